"""Doors to a certificate: what each claims about a tiny random market, beside what brute force knows of it."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import brute
import rankstream as rs
from rankstream._core.types import Vec
from rankstream.cli import main as command_line
from rankstream.streams.runs.endless import reweigh
from rankstream.streams.runs.growth import can_reweigh, grow

ROOM = 2e-6
"""What brute force itself may be off by, for distances of the order of 1."""
NAMES = ("l1", "l1.5", "l2", "l3", "linf", "max-difference", "squared-l2", "kl")
PLAIN = ("mirror-descent", "dual-averaging")
LEARNERS = (*PLAIN, "strongly-convex-mirror-descent", "follow-the-leader", "naive-frank-wolfe")
METHODS = ("auto", "max-entropy", "nearest", "primal-dual", "mnl", "latent-class", "markov-chain", "mle")


class Claim(NamedTuple):
    """What a door says, and what brute force does; ``upper`` and ``value`` are of the model.

    The least is ``sharp`` where brute force finds it; else it is that of a mixture that may not be the best.
    """

    lower: float
    upper: float
    least: float
    value: float
    gap: float | None = None
    sharp: bool = True

    def complaint(self) -> str | None:
        """What is wrong with it; None if nothing is."""
        room = ROOM * (1.0 + abs(self.least))
        if not self.lower <= self.least + room:
            return f"lower {self.lower!r} is above the least {self.least!r}"
        if self.sharp and not self.upper >= self.least - room:
            return f"upper {self.upper!r} is below the least {self.least!r}"
        if not abs(self.upper - self.value) <= 1e-6 * (1.0 + abs(self.value)):
            return f"upper {self.upper!r} is not the model's own {self.value!r}"
        if self.gap is not None and not abs(self.gap - (self.upper - self.lower)) <= 1e-12 * (1.0 + abs(self.upper)):
            return f"gap {self.gap!r} is not {self.upper!r} - {self.lower!r}"
        return None


class Market(NamedTuple):
    """Items, offers and what was chosen from them."""

    items: list[str]
    offers: brute.Offers
    tallies: Vec

    @property
    def counts(self) -> rs.ChoiceCounts:
        """The same as the library has it."""
        return rs.ChoiceCounts(rs.Assortments(self.offers, self.items), self.tallies)

    def corners(self, given: brute.Problem) -> Vec:
        """What all rankings choose from the offers that were seen."""
        return brute.corners(given.offers, self.items)


def market(random: np.random.Generator, all_seen: bool = False) -> Market:
    """A few offers; choices by a few rankings with noise, by nobody's rankings, or very few of them."""
    items = list("abcde")[: random.integers(3, 6)]
    drawn = [random.permutation(items)[: random.integers(1, len(items) + 1)] for _ in range(random.integers(1, 6))]
    offers = sorted({frozenset(offer.tolist()): tuple(offer.tolist()) for offer in drawn}.values())
    parts = []
    for offer in offers:
        shares = random.dirichlet(np.full(len(offer), random.choice([0.2, 1.0, 5.0])))
        total = int(random.choice([0, 1, 7, 50, 1000], p=[0.1, 0.1, 0.2, 0.3, 0.3]))
        parts.append(random.multinomial(max(total, int(all_seen)), shares).astype(float))
    tallies = np.concatenate(parts)
    if not tallies.any():
        tallies[0] = 1.0
    return Market(items, offers, tallies)


def claim(certificate: Any, name: str, given: brute.Problem, point: Vec, vertices: Vec) -> Claim:
    """A certificate beside brute force."""

    def of(other: Vec) -> float:
        return brute.value(name, other, given)

    found = brute.least(of, name, given, vertices)
    return Claim(certificate.lower, certificate.upper, found, of(point), certificate.gap, name in brute.EXACT)


def through_estimate(random: np.random.Generator, method: Any, name: str, weigh: str) -> Iterator[Claim]:
    """A fit of counts by a method."""
    one = market(random, all_seen=name == "kl")
    found = rs.estimate(one.counts, method=method, seed=int(random.integers(100)))
    given = brute.problem(one.offers, one.tallies, weigh)
    yield claim(found.certificate, name, given, brute.of_model(found.model, given.offers), one.corners(given))


def by_method(random: np.random.Generator) -> Iterator[Claim]:
    """Every method by its name: the distance is the weighted l2."""
    yield from through_estimate(random, str(random.choice(METHODS)), "l2", "root")


def by_nearest(random: np.random.Generator) -> Iterator[Claim]:
    """The nearest rankings in three norms, up to a random gap."""
    name, weigh = str(random.choice(["l1", "l2", "linf"])), random.choice(["root", "equal"])
    method = rs.methods.Nearest(
        distance=name,
        weights="observations" if weigh == "root" else "equal",
        gap=float(10.0 ** -random.integers(1, 9)),
        max_rounds=int(random.choice([1, 3, 1000])),
        max_rankings=int(random.integers(1, 4)) if random.random() < 0.3 else None,
    )
    yield from through_estimate(random, method, name, str(weigh))


def by_primal_dual(random: np.random.Generator) -> Iterator[Claim]:
    """The paper's solver through ``estimate``: learners that need no smoothing, or bring it in squares and KL."""
    name = str(random.choice(NAMES))
    learner = str(random.choice(PLAIN if name not in ("squared-l2", "kl") else (*PLAIN, "follow-the-leader")))
    learner = "follow-the-leader" if name == "kl" and random.random() < 0.5 else learner
    weigh = str(random.choice(["equal", "share" if name == "kl" else "root"]))
    weights: Any = "equal" if weigh == "equal" else "observations"
    method = rs.methods.PrimalDual(
        distance=name, learner=learner, weights=weights, max_rounds=int(random.integers(1, 300))
    )
    yield from through_estimate(random, method, name, weigh)


def by_solver(random: np.random.Generator) -> Iterator[Claim]:
    """Any learner with any distance, smoothed or not, on data that move; at three frequencies, with the true gap."""
    one = market(random, all_seen=True)
    offers = one.counts.assortments
    name, learner = str(random.choice(NAMES)), str(random.choice(LEARNERS))
    smoothing = float(random.choice([0.05, 0.5, 3.0]))
    needs = learner not in PLAIN
    free = name in ("kl", "squared-l2")
    wanted = None if free else smoothing if needs or random.random() < 0.3 else 0.0
    learner = "dual-averaging" if name == "kl" and learner == "strongly-convex-mirror-descent" else learner
    learner = "dual-averaging" if wanted and learner == "mirror-descent" else learner
    distance, player = rs.learners.match(name, learner, offers, 100, wanted)
    solver = rs.Solver(offers, distance, player, rs.oracles.auto(offers))
    state, shares = solver.init(), one.counts.frequencies()
    other = rs.ChoiceCounts(offers, random.gamma(0.5, size=offers.n_coordinates) + 1e-6).frequencies()
    for number in range(int(random.integers(1, 60))):
        share = random.random() if random.random() < 0.3 else float(number % 2 == 0)
        state = solver.step(state, share * shares + (1.0 - share) * other)
    vertices = brute.corners(one.offers, one.items)
    point = brute.of_model(solver.model(state), one.offers)
    for at in (None, shares, other):
        certificate = solver.certificate(state, at, truth=shares)
        here = state.sums.mean_frequencies if at is None else at
        given = brute.Problem(one.offers, here, np.ones(len(one.offers)), np.ones(len(one.offers)))
        plain = not distance.smoothing or name.startswith("squared")

        def of(other: Vec, given: brute.Problem = given, plain: bool = plain) -> float:
            return brute.value(name, other, given) if plain else distance.value(other, given.frequencies)

        kind = name if plain else "smoothed"
        found = brute.least(of, kind, given, vertices)
        yield Claim(certificate.lower, certificate.upper, found, of(point), certificate.gap, kind in brute.EXACT)
        if at is shares:
            yield Claim(
                of(point) - (certificate.true_gap or 0.0), of(point), found, of(point), None, kind in brute.EXACT
            )


def by_growing(random: np.random.Generator) -> Iterator[Claim]:
    """A run that goes on: new offers and items join, offers come to weigh more or less, some were not seen."""
    one = market(random)
    name = str(random.choice(["l1", "l2"]))
    cut = int(random.integers(1, len(one.offers) + 1))
    first = rs.Assortments(one.offers[:cut])
    solver = rs.Solver(first, rs.distances.make(name, first), rs.learners.DualAveraging(), rs.oracles.auto(first))
    state, counts = solver.init(), rs.ChoiceCounts(first, one.tallies[: first.n_coordinates])
    weights = np.ones(first.n_offers)
    for _ in range(int(random.integers(0, 40))):
        state = solver.step(state, counts)
    if cut < len(one.offers):
        counts = counts.extend(one.offers[cut:])
        counts.observe_coordinates(np.arange(first.n_coordinates, one.tallies.size), one.tallies[first.n_coordinates :])
        solver, state = grow(solver, state, counts.assortments)
        weights = np.ones(len(one.offers))
    for _ in range(int(random.integers(1, 30))):
        state = solver.step(state, counts)
    if can_reweigh(solver) and random.random() < 0.7:
        weights = random.choice([0.1, 1.0, 4.0], size=len(one.offers))
        solver, state = reweigh(solver, state, weights)
    for _ in range(int(random.integers(0, 30))):
        state = solver.step(state, counts)
    given = brute.problem(one.offers, one.tallies, "equal")
    seen = np.add.reduceat(one.tallies, counts.assortments.indptr[:-1]) > 0.0
    given = given._replace(weights=weights[seen])
    if given.frequencies.size:
        point = brute.of_model(solver.model(state), given.offers)
        yield claim(solver.certificate(state, counts), name, given, point, one.corners(given))


def by_estimator(random: np.random.Generator) -> Iterator[Claim]:
    """The scikit-learn face, in one piece or batch by batch."""
    one = market(random)
    items, rows, chosen = one.items, [], []
    tallies = np.minimum(one.tallies, 12.0)
    pairs = [(offer, item) for offer in one.offers for item in offer]
    for (offer, item), tally in zip(pairs, tallies.tolist(), strict=True):
        rows += [[float(name in offer) for name in items]] * int(tally)
        chosen += [items.index(item)] * int(tally)
    table, picked = np.array(rows), np.array(chosen)
    estimator = rs.RankingEstimator(method=str(random.choice(METHODS)))
    if random.random() < 0.3:
        estimator = rs.RankingEstimator(method="primal-dual")
        for part in np.array_split(random.permutation(len(picked)), min(3, len(picked))):
            estimator.partial_fit(table[part], picked[part])
    else:
        estimator.fit(table, picked)
    given = brute.problem(one.offers, tallies)
    given = brute.problem(given.offers, given.frequencies * given.totals[given.owner])  # weighed among those seen
    wanted = [(offer, item) for offer in given.offers for item in offer]
    asked = estimator.predict_proba([[float(name in offer) for name in items] for offer, _ in wanted])
    point = np.array([row[items.index(item)] for row, (_, item) in zip(asked, wanted, strict=True)])
    yield claim(estimator.certificate_, "l2", given, point, one.corners(given))


def by_live(random: np.random.Generator) -> Iterator[Claim]:
    """A stream in batches, whose offers come one by one: all choices count, the latest ones, or later ones for more."""
    one = market(random)
    kind = str(random.choice(["plain", "half-life", "window", "detect"]))
    half, window = float(random.choice([3.0, 40.0])), int(random.choice([5, 60]))
    options: dict[str, Any] = {
        "plain": {"detect": False},
        "half-life": {"half_life": half},
        "window": {"window": window},
        "detect": {"detect": True},
    }
    live = rs.Live(**options[kind], rounds=int(random.integers(1, 40)))
    pairs = [(offer, item) for offer in one.offers for item in offer]
    shares = one.tallies / one.tallies.sum()
    drawn = np.sort(random.choice(len(pairs), size=int(random.integers(1, 150)), p=shares))
    drawn = drawn if random.random() < 0.5 else random.permutation(drawn)
    for part in np.array_split(drawn, int(random.integers(1, 6))):
        live.observe([rs.Record(*pairs[place]) for place in part.tolist()])
        if not live.ready or live.counts is None:
            continue
        ages = np.arange(live.records)[::-1].astype(float)
        weights = {"half-life": 0.5 ** (ages / half), "window": (ages < window).astype(float)}
        each = weights.get(kind, np.ones(live.records))
        counted = np.bincount(drawn[: live.records], each, len(pairs)).astype(np.float64)
        if kind == "detect":  # which choices count is its own affair: since the last alarm
            given = brute.problem(list(live.counts.assortments.offers), live.counts.tallies)
        else:
            known = [offer for offer in one.offers if offer in live.counts.assortments.offers]
            kept = np.array([offer in known for offer, _ in pairs])
            given = brute.problem(known, counted[kept])
        point = brute.of_model(live.model, given.offers)
        yield claim(live.certificate, "l2", given, point, one.corners(given))


def by_shell(random: np.random.Generator) -> Iterator[Claim]:
    """``rankstream fit --json``, and what its file predicts."""
    one = market(random)
    rows = ["offered,chosen,count"]
    pairs = [(offer, item) for offer in one.offers for item in offer]
    for (offer, item), tally in zip(pairs, one.tallies.tolist(), strict=True):
        rows += [f"{';'.join(offer)},{item},{tally:g}"] if tally else []
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out:
        data, saved = Path(folder) / "data.csv", Path(folder) / "model.json"
        data.write_text("\n".join(rows) + "\n")
        words = ["fit", str(data), "-o", str(saved), "--method", str(random.choice(METHODS)), "--json"]
        try:
            command_line(words)
        except SystemExit as ended:
            if ended.code:
                raise ValueError(f"exit code {ended.code}: {' '.join(words)}") from None
        model: Any = rs.load_model(saved)
    found = json.loads(out.getvalue())
    given = brute.problem(one.offers, one.tallies)
    given = brute.problem(given.offers, given.frequencies * given.totals[given.owner])
    point = brute.of_model(model, given.offers)
    values = [brute.value("l2", point, given), found["proven_least_distance"], found["distance"], found["gap"]]
    least = brute.least(lambda other: brute.value("l2", other, given), "l2", given, one.corners(given))
    yield Claim(values[1], values[2], least, values[0], values[3])
