"""Certificates against brute force: what every door proves, on tiny random markets where all rankings can be tried.

A case is a market of 3 to 5 items with a few offers, some of which nobody may have seen. What is claimed through a door
(``estimate`` by every method, ``Solver`` with every learner and distance, on data that move, grow, and are reweighed,
``RankingEstimator``, ``Live``, the command line, the baselines, ranges, oracles) must enclose the optimum over all
rankings: lower <= least <= upper, upper is the distance of the model itself, and gap is their difference. Run
``python benchmarks/certificates.py --cases 3000``; ``--first 17 --cases 1`` repeats one that failed.
"""

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import brute
import doors
import rankstream as rs
from doors import Claim, market
from milp_oracle import MilpOracle
from rankstream._core.types import Vec
from rankstream.columns.corrective import fit_nearest
from rankstream.columns.mle import fit_mle
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.entropy.ranking_laws import plackett_luce

Random = np.random.Generator


def proven(found: Any, name: str, given: brute.Problem, vertices: Vec) -> Claim:
    """A fit with a value and a bound, beside brute force."""

    def of(other: Vec) -> float:
        return brute.value(name, other, given)

    point = brute.of_model(found.model, given.offers)
    least = brute.least(of, name, given, vertices)
    return Claim(found.bound, found.value, least, of(point), found.gap, name in brute.EXACT)


def by_baseline(random: Random) -> Iterator[Claim]:
    """Column generation and Frank-Wolfe, stopped early or not."""
    one = market(random)
    rounds = int(random.choice([1, 2, 5, 500]))
    if random.random() < 0.4:
        name: Any = str(random.choice(["l1", "linf"]))
        weighted = bool(random.random() < 0.5)
        given = brute.problem(one.offers, one.tallies, "root" if weighted else "equal")
        weights = rs.distances.observation_weights(one.counts) if weighted else None
        distance = rs.distances.make(name, one.counts.assortments, weights=weights)
        near = fit_nearest(one.counts.assortments, one.counts, distance, tolerance=1e-7, max_rounds=rounds)
        ends = near.certificate
        fit: Any = brute.ProvenFit(near.model, ends.upper, ends.lower, near.converged, near.rounds, {})
    else:
        name, given = "squares", brute.problem(one.offers, one.tallies)
        settings = rs.methods.PrimalDual(
            distance="squared-l2", learner="follow-the-leader", gap=1e-4, max_rounds=rounds
        )
        plain = rs.estimate(one.counts, method=settings)
        scale = 2.0 / int((one.counts.totals > 0.0).sum())  # its distance is half the squares, times the offers
        ends = plain.certificate
        fit = brute.ProvenFit(plain.model, scale * ends.upper, scale * ends.lower, plain.converged, plain.rounds, {})
    yield proven(fit, str(name), given, one.corners(given))


def by_likelihood(random: Random) -> Iterator[Claim]:
    """Maximum likelihood, stopped early or not."""
    one = market(random)
    given = brute.problem(one.offers, one.tallies)
    found = fit_mle(one.counts, max_rounds=int(random.choice([1, 3, 500])))
    yield proven(found, "likelihood", given, one.corners(given))


def by_rationality(random: Random) -> Iterator[Claim]:
    """The limit of rationality in both losses."""
    one = market(random)
    given = brute.problem(one.offers, one.tallies)
    found, vertices = rs.rationality(one.counts, samples=0), one.corners(given)
    point = brute.of_model(found.model, given.offers)
    squares = brute.least(lambda other: brute.value("squares", other, given), "squares", given, vertices)
    yield Claim(found.lower, found.upper, squares, brute.value("squares", point, given))
    likely = brute.least(lambda other: brute.value("likelihood", other, given), "likelihood", given, vertices)
    yield Claim(*found.divergence, likely, found.divergence[1], None, False)


def by_proof(random: Random) -> Iterator[Claim]:
    """The bound from cuts, with parts so small that it is not exact, and offers that weigh more or less."""
    one = market(random)
    weighted = bool(random.random() < 0.5)
    given = brute.problem(one.offers, one.tallies, "root" if weighted else "equal")
    rounds, items = int(random.choice([1, 3, 30])), int(random.choice([0, 2, 12]))
    weights = rs.distances.observation_weights(one.counts) if weighted else None
    lower = rs.certificate.Proof(one.counts.assortments, one.counts, weights, items=items).advance(0.3, rounds)
    least = brute.least(lambda other: brute.value("l2", other, given), "l2", given, one.corners(given))
    yield Claim(lower, least, least, least)


def by_range(random: Random) -> Iterator[Claim]:
    """What an offer can earn, and how much an item can get: a claim for either end."""
    one = market(random)
    given = brute.problem(one.offers, one.tallies, "equal")
    offer = tuple(random.permutation(one.items)[: random.integers(1, len(one.items) + 1)].tolist())
    region: Any = str(random.choice(["l1", "linf"]))
    radius = float(random.choice([0.0, 0.05, 0.5]))
    if random.random() < 0.5:
        prices: dict[Any, float] = {item: float(random.integers(0, 9)) for item in one.items}
        found = rs.revenue_range(one.counts, offer, prices, radius, region=region)
    else:
        prices = {item: float(item == offer[0]) for item in one.items}
        found = rs.probability_range(one.counts, offer, offer[0], radius, region=region)
    gains = np.array([prices[item] for item in offer])
    inner = brute.extremes(given, offer, gains, region, found.tolerance, one.items)
    outer = brute.extremes(given, offer, gains, region, found.tolerance + 1e-5, one.items)
    scale = max(1.0, float(gains.max()))
    if not np.isfinite([*inner, *outer]).all():
        raise ValueError(f"nothing fits within {found.tolerance!r}, yet it was said to")
    yield Claim(found.low / scale, inner[0] / scale, inner[0] / scale, inner[0] / scale)
    yield Claim(-found.high / scale, -inner[1] / scale, -inner[1] / scale, -inner[1] / scale)
    if found.proven:
        yield Claim(outer[0] / scale - 1e-4, found.low / scale, outer[0] / scale - 1e-4, found.low / scale)
        yield Claim(-outer[1] / scale - 1e-4, -found.high / scale, -outer[1] / scale - 1e-4, -found.high / scale)


def by_entropy(random: Random) -> Iterator[Claim]:
    """The gap of a maximum-entropy fit with a known prior: its cost against the least, ranking by ranking."""
    one = market(random)
    given = brute.problem(one.offers, one.tallies)
    worths = random.gamma(1.0, size=len(one.items)) + 0.05
    trust, seen = float(random.choice([1.0, 30.0])), rs.Assortments(given.offers, one.items)
    found = fit_max_entropy(
        one.counts, plackett_luce(one.counts.assortments.items, worths.tolist()), trust=trust,
        tolerance=float(random.choice([1e-6, 1e-2, 1.0])), max_rounds=int(random.choice([1, 3, 1000])),
    )  # fmt: skip
    if found.assortments.offers != seen.offers:
        raise ValueError("the fit is of other offers than those that were seen")
    logs, vertices = brute.luce(one.items, worths, given.offers)
    cost, least = brute.tilted(logs, vertices, given, trust, found.duals)
    yield Claim(cost - found.gap, cost, least, cost)


def by_oracle(random: Random) -> Iterator[Claim]:
    """Every oracle, in a hurry or not, again and again: its bound, the least cost, and its ranking's own."""
    one = market(random)
    offers = one.counts.assortments
    kinds: list[Callable[[], Any]] = [
        lambda: rs.oracles.auto(offers),
        lambda: MilpOracle(offers),
        lambda: rs.oracles.SearchOracle(offers, rounds=2, sweeps=int(random.choice([0, 2]))),
    ]
    oracle, costs = kinds[int(random.integers(len(kinds)))](), random.normal(size=offers.n_coordinates)
    vertices = brute.corners(one.offers, one.items)
    for _ in range(3):
        answer = oracle.cheapest(costs)
        order = [one.items.index(offers.items[code]) for code in answer.ranking.tolist()]
        best = [min(offer, key=lambda item: order.index(one.items.index(item))) for offer in one.offers]
        point = [float(item == top) for offer, top in zip(one.offers, best, strict=True) for item in offer]
        yield Claim(answer.bound, answer.value, float((vertices @ costs).min()), float(costs @ point))
        costs = costs + random.normal(size=costs.size) * random.choice([0.0, 0.01, 1.0])


DOORS: dict[str, Callable[[Random], Iterator[Claim]]] = {
    "estimate, by name": doors.by_method,
    "estimate, Nearest": doors.by_nearest,
    "estimate, PrimalDual": doors.by_primal_dual,
    "Solver, moving data": doors.by_solver,
    "Solver, growth": doors.by_growing,
    "RankingEstimator": doors.by_estimator,
    "Live": doors.by_live,
    "rankstream fit": doors.by_shell,
    "baselines": by_baseline,
    "likelihood": by_likelihood,
    "rationality": by_rationality,
    "proof": by_proof,
    "ranges": by_range,
    "maximum entropy": by_entropy,
    "oracles": by_oracle,
}


def run(number: int, seed: int, told: dict[str, Counter[str]]) -> None:
    """One case: its door, its claims, and what is wrong with them."""
    name = list(DOORS)[number % len(DOORS)]
    found, began = told[name], time.monotonic()
    found["cases"] += 1
    try:
        for claim in DOORS[name](np.random.default_rng([seed, number])):
            found["claims"] += 1
            wrong = claim.complaint()
            if wrong is not None:
                found["failures"] += 1
                print(f"case {number}, seed {seed}, {name}: {wrong}", flush=True)
    except Exception:
        found["failures"] += 1
        print(f"case {number}, seed {seed}, {name}:\n{traceback.format_exc()}", flush=True)
    found["milliseconds"] += int(1e3 * (time.monotonic() - began))


def main() -> None:
    """Run the cases, print what is wrong as it comes, then a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10 * len(DOORS))
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    told: dict[str, Counter[str]] = {name: Counter() for name in DOORS}
    for number in range(given.first, given.first + given.cases):
        run(number, given.seed, told)
    print(f"{'door':<24}{'cases':>8}{'claims':>8}{'failures':>10}{'ms each':>9}")
    for name, found in told.items():
        each = found["milliseconds"] / max(1, found["cases"])
        print(f"{name:<24}{found['cases']:>8}{found['claims']:>8}{found['failures']:>10}{each:>9.0f}")
    total = sum(told.values(), Counter[str]())
    print(f"{'all':<24}{total['cases']:>8}{total['claims']:>8}{total['failures']:>10}")
    sys.exit(total["failures"] > 0)


if __name__ == "__main__":
    main()
