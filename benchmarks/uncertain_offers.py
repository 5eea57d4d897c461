"""Estimates and ranges where shelves are seen once a day: ``python benchmarks/uncertain_offers.py --seeds 100 110``.

Simulated stores with a known truth (a mixture of logits). Each day has a listing; a snapshot is taken before its first
customer, and all items return with the next one. About 30 % of the items of a day sell out, once, at a time that is not
logged: at any customer alike ("chance"), or when their stock is sold ("stock", so popular items sell out sooner).

Compared on new offers: the fit that knows each offer, the fit to the largest sets (naive), the fit to the days without
a sell-out, and EM. Ranges of shares at 95 %: whether they contain the truth, and their width beside those from the
days without a sell-out alone (without the inequalities), and from known offers. The last line has both ratios: no
method can be narrower than known offers allow. Seeds below 100 were used for tuning.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

import rankstream as rs
from rankstream.data.simulate import MixedMNL, mixed_mnl, random_offers

NOTHING = "nothing"
SLOT_CUSTOMERS = 10  # of a slot at most, as if customers were counted every hour or so
Day = tuple[tuple[Any, ...], list[tuple[frozenset[Any], Any]], dict[Any, int]]


class Stores(NamedTuple):
    """The truth, and for each day its listing, each customer's offer and choice, and who sold out when."""

    truth: MixedMNL
    days: list[Day]
    tests: rs.Assortments


def simulate(seed: int, world: str, items: int = 8, listed: int = 6, listings: int = 12, days: int = 10) -> Stores:
    """Simulate all days: ``listings`` shelves of ``listed`` items, each for some days of about 120 customers."""
    random = np.random.default_rng(seed)
    labels = [f"item{number}" for number in range(items)]
    truth = mixed_mnl(labels, 3, 1.0, random)
    found = []
    for _ in range(listings):
        listing = tuple(labels[k] for k in np.sort(random.permutation(items)[:listed]))
        found += [simulate_day(truth, listing, world, random) for _ in range(days)]
    seen = {offer for _, customers, _ in found for offer, _ in customers}
    tests = random_offers(labels, 60, random, "sizes", [tuple(offer) for offer in seen], items - 1)
    return Stores(truth, found, rs.Assortments(tests, truth.items))


def simulate_day(truth: MixedMNL, listing: tuple[Any, ...], world: str, random: np.random.Generator) -> Day:
    """Simulate the customers of one day, one after the other."""
    customers = int(random.poisson(120))
    shelf = dict.fromkeys(listing)
    ends = {item: int(random.integers(0, customers + 1)) for item in listing if random.random() < 0.3}
    shares = dict(zip((*listing, NOTHING), truth.probabilities(rs.Assortments([(*listing, NOTHING)])), strict=True))
    stock = {item: 1 + int(random.poisson(1.15 * customers * shares[item])) for item in listing}
    gone, known = dict[Any, int](), dict[tuple[Any, ...], Any]()
    customers_seen: list[tuple[frozenset[Any], Any]] = []
    for number in range(customers):
        if world == "chance":
            gone |= {item: number for item, end in ends.items() if end == number}
        offer = (*(item for item in shelf if item not in gone), NOTHING)
        if offer not in known:
            known[offer] = truth.probabilities(rs.Assortments([offer]))
        chosen = offer[int(random.choice(len(offer), p=known[offer]))]
        customers_seen.append((frozenset(offer), chosen))
        if world == "stock" and chosen in stock:
            stock[chosen] -= 1
            if not stock[chosen]:
                gone[chosen] = number + 1
    return listing, customers_seen, {**ends, **gone} if world == "chance" else gone


def known_counts(stores: Stores) -> rs.ChoiceCounts:
    """The choices from the offers as they were."""
    tally = Counter(pair for _, customers, _ in stores.days for pair in customers)
    offers = {offer: tuple(item for item in stores.truth.items if item in offer) for offer, _ in tally}
    counts = rs.ChoiceCounts(rs.Assortments(offers.values(), stores.truth.items))
    counts.observe([offers[offer] for offer, _ in tally], [item for _, item in tally], list(tally.values()))
    return counts


def uncertain(days: list[Day], items: tuple[Any, ...]) -> rs.UncertainCounts:
    """What two snapshots and the receipts of a day tell: slots end with an item's last sale, or when they are full."""
    found = rs.UncertainCounts(items)
    for listing, customers, gone in days:
        last = {item: max((k for k, (_, one) in enumerate(customers) if one == item), default=-1) for item in gone}
        ends = {*last.values(), *range(SLOT_CUSTOMERS - 1, len(customers), SLOT_CUSTOMERS), len(customers) - 1} - {-1}
        slots, first = [], 0
        for end in sorted(ends):
            slots.append(Counter(one for _, one in customers[first : end + 1]))
            first = end + 1
        left = tuple(item for item in listing if item not in gone)
        found.observe_period((*left, NOTHING), (*listing, NOTHING), slots)
    return found


def rmse(model: Any, stores: Stores) -> float:
    """The root mean squared error of the shares of new offers."""
    errors = model.probabilities(stores.tests) - stores.truth.probabilities(stores.tests)
    return float(np.sqrt(np.mean(errors**2)))


def compare_fits(stores: Stores, method: str) -> dict[str, float]:
    """Errors of each fit, and CPU seconds."""
    seen, items = uncertain(stores.days, stores.truth.items), stores.truth.items
    quiet = [day for day in stores.days if not day[2]]
    data: dict[str, Any] = {"known": known_counts(stores), "naive": seen.naive_counts(), "em": seen}
    if quiet:
        data["no sell-out"] = uncertain(quiet, items).naive_counts()
    found: dict[str, float] = {}
    for name, counts in data.items():
        began = time.process_time()
        found[name] = rmse(rs.estimate(counts, method=method).model, stores)
        found[f"{name} seconds"] = time.process_time() - began
    return found


def compare_ranges(stores: Stores, seed: int, number: int) -> dict[str, float]:
    """Whether ranges of shares in new offers and in listings contain the truth, and how wide they are.

    Beside them the widths from days without a sell-out, and from known offers. Without any of these it is 1.
    """
    items, random = stores.truth.items, np.random.default_rng(10_000 + seed)
    counts, known = known_counts(stores), rs.UncertainCounts(items)
    for offer, chosen in zip(
        counts.assortments.offers, np.split(counts.tallies, counts.assortments.indptr[1:-1]), strict=True
    ):
        known.observe_period(offer, offer, [dict(zip(offer, chosen.tolist(), strict=True))])
    quiet = uncertain([day for day in stores.days if not day[2]], items)
    data = {"uncertain": uncertain(stores.days, items), "no sell-out": quiet, "known": known}
    found: dict[str, list[float]] = defaultdict(list)
    listings = sorted({(*listing, NOTHING) for listing, *_ in stores.days})
    for kind, offers in (("new", stores.tests.offers), ("listing", listings)):
        for offer in [offers[k] for k in random.permutation(len(offers))[:number]]:
            item = offer[int(random.integers(len(offer)))]
            truth = stores.truth.probabilities(rs.Assortments([offer]))[offer.index(item)]
            for name, one in data.items():
                bounds = rs.probability_range(one, offer, item, region="confidence", accuracy=1e-3)
                found[f"{kind} {name}: width"].append(bounds.width)
                found[f"{kind} {name}: contains"].append(float(bounds.low <= truth <= bounds.high))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    """Print one line of JSON per seed and world, then means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=(100, 110), help="first seed, and the one after the last")
    parser.add_argument("--worlds", nargs="+", default=["chance", "stock"])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--ranges", type=int, default=0, help="ranges per store")
    parser.add_argument("--no-fits", action="store_true")
    given = parser.parse_args()
    for world in given.worlds:
        rows = []
        for seed in range(*given.seeds):
            stores = simulate(seed, world)
            share = sum(len(gone) for *_, gone in stores.days) / sum(len(listing) for listing, *_ in stores.days)
            row: dict[str, float] = {"sold out": share}
            row |= {} if given.no_fits else compare_fits(stores, given.method)
            row |= compare_ranges(stores, seed, given.ranges) if given.ranges else {}
            rows.append(row)
            print(json.dumps({"seed": seed, "world": world, **{k: round(v, 5) for k, v in row.items()}}), flush=True)
        means = {name: round(float(np.mean([row[name] for row in rows if name in row])), 5) for name in rows[0]}
        if "em" in means:
            means |= {f"{name} / known": round(means[name] / means["known"], 3) for name in ("naive", "em")}
        for kind in ("new", "listing") if given.ranges else ():
            without, uncertain, known = (
                means[f"{kind} {name}: width"] for name in ("no sell-out", "uncertain", "known")
            )
            means[f"{kind}: width with / without the inequalities"] = round(uncertain / without, 3)
            means[f"{kind}: width with all offers known / without the inequalities"] = round(known / without, 3)
        print(json.dumps({"mean": world, **means}), flush=True)


if __name__ == "__main__":
    main()
