"""Brute force over all rankings of a few items: least distances, losses and ranges, written without the library's own.

A least value is that of a mixture of rankings that is really there, so a proven bound above it is wrong for certain.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize, nnls

from rankstream._core.types import Vec

Offers = list[tuple[Any, ...]]
HEAVY = 1e3
EXACT = ("l1", "l2", "linf", "max-difference", "squared-l2", "squares")
"""Where a linear program or least squares find the least value; others are approached from above."""


class ProvenFit(NamedTuple):
    """A fit of any kind as ``fit_mle`` answers: its loss ``value``, and a proven lower ``bound`` on any loss."""

    model: Any
    value: float
    bound: float
    proven: bool
    iterations: int
    seconds: dict[str, float]

    @property
    def gap(self) -> float:
        """How far the value can be from the minimum."""
        return self.value - self.bound


class Problem(NamedTuple):
    """Offers with their frequencies, what each offer weighs, and how often it was made."""

    offers: Offers
    frequencies: Vec
    weights: Vec
    totals: Vec

    @property
    def owner(self) -> Vec:
        """The offer of every coordinate."""
        return np.repeat(np.arange(len(self.offers)), [len(offer) for offer in self.offers])

    @property
    def scale(self) -> Vec:
        """The weight of every coordinate."""
        scale: Vec = self.weights[self.owner]
        return scale

    @property
    def shares(self) -> Vec:
        """The share of all observations that a coordinate's offer has."""
        shares: Vec = (self.totals / self.totals.sum())[self.owner]
        return shares


def problem(offers: Offers, tallies: Vec, weigh: str = "root") -> Problem:
    """A problem from what was chosen, offer by offer; those that nobody saw are left out.

    ``weigh`` is "root" or "share" of an offer's observations, relative to their mean, or "equal".
    """
    kept, parts, totals, start = [], [], [], 0
    for offer in offers:
        part = tallies[start : start + len(offer)]
        start += len(offer)
        if part.sum() > 0.0:
            kept.append(offer)
            parts.append(part / part.sum())
            totals.append(part.sum())
    mean = sum(totals) / len(offers)  # of all offers, seen or not, as the library weighs them
    power = {"root": 0.5, "share": 1.0, "equal": 0.0}[weigh]
    weights = (np.array(totals) / mean) ** power
    return Problem(kept, np.concatenate(parts), weights, np.array(totals))


def corners(offers: Offers, items: list[Any]) -> Vec:
    """What every ranking of the items chooses from every offer; rankings that choose alike are there once."""
    rows = set()
    for order in permutations(items):
        place = {item: number for number, item in enumerate(order)}
        best = [min(offer, key=place.__getitem__) for offer in offers]
        rows.add(tuple(float(item == winner) for offer, winner in zip(offers, best, strict=True) for item in offer))
    return np.array(sorted(rows))


def of_model(model: Any, offers: Offers) -> Vec:
    """The probabilities of a model, asked offer by offer."""
    return np.array([float(model.predict(offer)[item]) for offer in offers for item in offer])


def value(name: str, point: Vec, given: Problem) -> float:
    """The distance or loss of a point by its name."""
    difference = given.scale * (point - given.frequencies)
    if name == "kl":
        held = np.maximum(point, 0.01)
        logs = np.log(np.maximum(given.frequencies, 1e-300) / held) + (held - point) / 0.01
        return float(given.scale * given.frequencies @ logs)
    if name == "likelihood":
        here = given.frequencies > 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(given.frequencies[here]) - np.log(np.maximum(point[here], 0.0))
        return float((given.shares * given.frequencies)[here] @ logs)
    if name == "squares":
        return float(given.shares @ (point - given.frequencies) ** 2)
    if name == "max-difference":
        return float(sum(max(difference[given.owner == number]) for number in range(len(given.offers))))
    if name == "linf":
        return float(np.abs(difference).max())
    squared, q = name.startswith("squared-"), float(name.rpartition("l")[2])
    norm = float((np.abs(difference) ** q).sum() ** (1.0 / q))
    return 0.5 * norm**2 if squared else norm


def least(of: Callable[[Vec], float], name: str, given: Problem, vertices: Vec) -> float:
    """The least value of any mixture, from the best of a few ways to look for it."""
    weights = [_least_squares(given, vertices, given.scale), _least_squares(given, vertices, np.sqrt(given.shares))]
    if name in ("l1", "linf", "max-difference"):
        weights.append(_linear(name, given, vertices))
    best = min((of(mix @ vertices), number) for number, mix in enumerate(weights))
    if name == "likelihood":
        return min(best[0], of(_expect(given, vertices) @ vertices))
    if name not in EXACT:
        mixture = 0.999 * weights[best[1]] + 0.001 / len(vertices)
        return min(best[0], _descend(of, mixture, vertices))
    return best[0]


def _least_squares(given: Problem, vertices: Vec, scale: Vec) -> Vec:
    system = np.vstack([(vertices * scale).T, HEAVY * np.ones(len(vertices))])
    weights, _ = nnls(system, np.append(scale * given.frequencies, HEAVY), maxiter=100 * len(vertices))
    mixture: Vec = weights / weights.sum()
    return mixture


def _linear(name: str, given: Problem, vertices: Vec) -> Vec:
    count, size = vertices.shape
    errors = {"l1": np.eye(size), "linf": np.ones((size, 1))}.get(name, np.eye(len(given.offers))[given.owner])
    rows, target = (vertices * given.scale).T, given.scale * given.frequencies
    within = np.hstack([rows, -errors])
    if name != "max-difference":
        within, target = np.vstack([within, np.hstack([-rows, -errors])]), np.append(target, -target)
    prices = np.append(np.zeros(count), np.ones(errors.shape[1]))
    whole = np.append(np.ones(count), np.zeros(errors.shape[1]))[np.newaxis]
    limits = [(0.0, None)] * count + [(None, None)] * errors.shape[1]
    found = np.maximum(linprog(prices, within, target, whole, [1.0], limits).x[:count], 0.0)
    mixture: Vec = found / found.sum()
    return mixture


def _expect(given: Problem, vertices: Vec, steps: int = 1500) -> Vec:
    """The likeliest weights, by expectation and maximisation from equal ones."""
    weights, mass = np.full(len(vertices), 1.0 / len(vertices)), given.shares * given.frequencies
    for _ in range(steps):
        ratio = np.divide(mass, weights @ vertices, out=np.zeros(mass.size), where=mass > 0.0)
        weights = weights * (vertices @ ratio)
        weights /= weights.sum()
    mixture: Vec = weights
    return mixture


def _descend(of: Callable[[Vec], float], mixture: Vec, vertices: Vec, steps: int = 150) -> float:
    """Weights that follow the slope, each in proportion to itself, with steps that only go down."""
    weights, best, step = mixture, of(mixture @ vertices), 1.0
    for _ in range(steps):
        point = weights @ vertices
        small = 1e-7
        slope = np.array([of(point + small * axis) - of(point - small * axis) for axis in np.eye(point.size)])
        gains = vertices @ slope / (2.0 * small)
        while step > 1e-9:
            moved = weights * np.exp(-step * (gains - gains.min()))
            moved /= moved.sum()
            reached = of(moved @ vertices)
            if reached < best:
                weights, best, step = moved, reached, 2.0 * step
                break
            step *= 0.5
        else:
            break
    return best


def extremes(
    given: Problem, offer: tuple[Any, ...], gains: Vec, region: str, radius: float, items: list[Any]
) -> list[float]:
    """The least and the largest expected gain of an offer over all mixtures within a distance of the frequencies."""
    whole = corners([*given.offers, offer], items)
    rows, earned = whole[:, : given.frequencies.size].T, whole[:, given.frequencies.size :] @ gains
    size = given.frequencies.size
    errors = np.eye(size) if region == "l1" else np.ones((size, 1))
    within = np.block([[rows, -errors], [-rows, -errors]])
    within = np.vstack([within, np.append(np.zeros(len(whole)), np.ones(errors.shape[1]))])
    limit = np.concatenate([given.frequencies, -given.frequencies, [radius]])
    total = np.append(np.ones(len(whole)), np.zeros(errors.shape[1]))[np.newaxis]
    ends = []
    for sign in (1.0, -1.0):
        prices = np.append(sign * earned, np.zeros(errors.shape[1]))
        found = linprog(prices, within, limit, total, [1.0])
        ends.append(sign * float(found.fun) if found.status == 0 else sign * np.inf)
    return ends


def luce(items: list[Any], worths: Vec, offers: Offers) -> tuple[Vec, Vec]:
    """Of every ranking: the log of its probability where the next item is drawn by its worth, and what it chooses."""
    logs, rows = [], []
    for order in permutations(range(len(items))):
        drawn = worths[list(order)]
        logs.append(float(np.log(drawn / np.cumsum(drawn[::-1])[::-1]).sum()))
        place = {items[code]: number for number, code in enumerate(order)}
        best = [min(offer, key=place.__getitem__) for offer in offers]
        rows.append([float(item == top) for offer, top in zip(offers, best, strict=True) for item in offer])
    return np.array(logs), np.array(rows)


def tilted(logs: Vec, vertices: Vec, given: Problem, trust: float, duals: Vec) -> tuple[float, float]:
    """Of a law over rankings tilted by duals: its cost (divergence and squared errors), and the least cost of any."""
    prior = np.maximum(np.exp(logs) @ vertices, 1e-3)  # shares before the tilt
    penalty = 0.1 * given.totals[given.owner] / (trust * prior)  # the variance of a share of 0.1 is the unit

    def dual(y: Vec) -> tuple[float, Vec]:
        raw = logs - vertices @ y
        top = float(raw.max())
        law = np.exp(raw - top)
        point = law @ vertices / law.sum()
        found = top + float(np.log(law.sum())) + float(given.frequencies @ y) + 0.5 * float((y**2 / penalty).sum())
        return found, given.frequencies - point + y / penalty

    raw = logs - vertices @ duals
    law = np.exp(raw - raw.max())
    law /= law.sum()
    cost = float(law @ (np.log(np.maximum(law, 1e-300)) - logs))
    cost += 0.5 * float(penalty @ (law @ vertices - given.frequencies) ** 2)
    found = minimize(dual, np.zeros(given.frequencies.size), jac=True, method="BFGS", options={"gtol": 1e-10})
    return cost, -float(found.fun)
