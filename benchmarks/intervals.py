"""How often intervals of predicted shares contain the true one: on offers with data, and on offers nobody has seen.

    python benchmarks/intervals.py [--quick] [--markets 10] [--replicates 30] [--half-life 700]
        [--by-market 2000 [--draws 12]]

Truths are those of ``truths.py`` (10 items, 40 offers) and four rankings of 5 items (10 offers of 150 choices, all
others unseen); every coordinate of every offer counts once. "spread alone" is the interval without what held-out offers
add; "rescaled" is that one times a constant, chosen with the truth at hand such that it covers as often as ours: an
interval that is as wide on average has its width in the right places. Markets are those of seeds from 4001 on;
what is added was settled on others. With ``--half-life`` the same choices come one after the other, in an order drawn
by the seed, to counts that forget. With ``--by-market``, every market is shown by itself; with ``--draws``, its
coverage is also averaged over so many draws of the choices, from the same market.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import combinations

import joblib
import numpy as np

from rankstream import Assortments, Bootstrap, ChoiceCounts, DecayingCounts, RankingModel
from rankstream._core.types import Vec
from rankstream.models.parametric.mnl import fit_mnl
from truths import TRUTHS, Shares

FIRST_SEED = 4001
Z = 1.959964
FEW = "four rankings of 5"
LEAST, MOST = 0.92, 0.98  # between which the coverage of a market should be
SMALL_SHARE = 0.05
DRAW_STEP = 100_000  # between the seeds of two draws of one market's choices
CELLS = [(FEW, 1_500)] + [
    (name, choices)
    for name in ("one logit", "five logits", "ten logits", "ten rankings", "normal taste", "Markov chain")
    for choices in (2_000, 10_000)
]


def few_rankings(seed: int) -> tuple[ChoiceCounts, Assortments, Shares]:
    """Four customers, five items: the truth least like any smooth prior."""
    random, items = np.random.default_rng(seed), tuple("abcde")
    every = [offer for size in (2, 3, 4, 5) for offer in combinations(items, size)]
    order = random.permutation(len(every)).tolist()
    offers, test = (Assortments([every[k] for k in part], items) for part in (order[:10], order[10:]))
    orders = np.array([random.permutation(5) for _ in range(4)])
    model = RankingModel.from_codes(items, orders, random.dirichlet(np.ones(4)))
    parts = np.split(model.probabilities(offers), offers.indptr[1:-1])
    tallies = [random.multinomial(150, np.maximum(part, 0.0) / part.sum()) for part in parts]
    return ChoiceCounts(offers, np.concatenate(tallies)), test, model.probabilities


def forgotten(counts: ChoiceCounts, half_life: float, seed: int) -> DecayingCounts:
    """The same choices as they came one after the other to counts that forget."""
    places = np.repeat(np.arange(counts.tallies.size), counts.tallies.astype(np.int64))
    fading = DecayingCounts(counts.assortments, half_life)
    fading.observe_coordinates(np.random.default_rng(seed).permutation(places))
    return fading


def measure(
    name: str, choices: int, seed: int, replicates: int, half_life: float | None = None
) -> tuple[list[tuple[Vec, ...]], float]:
    """For seen and for unseen offers: share, spread alone, whole reach and truth; and the CPU seconds."""
    if name == FEW:
        counts, test, shares = few_rankings(seed)
    else:
        truth = TRUTHS[name](seed)
        counts, test, shares = truth.counts(choices, seed), truth.test, truth.shares
    counts = counts if half_life is None else forgotten(counts, half_life, seed)
    start = time.process_time()
    found = Bootstrap(counts, replicates=replicates, seed=seed)
    groups: list[tuple[Vec, ...]] = []
    for offers in (counts.assortments, test):
        share, error, shift = found.spread(offers)
        spread = error**2 + shift**2
        whole = found.misfit.variance(share, spread, found.misfit.has(offers))
        groups.append((share, Z * np.sqrt(spread), Z * np.sqrt(whole), shares(offers)))
    return groups, time.process_time() - start


def covered(share: Vec, reach: Vec, truth: Vec) -> tuple[float, float]:
    """How often intervals contain the truth, and how wide they are."""
    low, high = np.maximum(0.0, share - reach), np.minimum(1.0, share + reach)
    return float(((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()), float((high - low).mean())


def all_new(counts: ChoiceCounts) -> Assortments:
    """All offers of up to five items that have no data."""
    items, seen = counts.assortments.items, {frozenset(offer) for offer in counts.assortments.offers}
    every = [(*menu, items[-1]) for size in range(1, 6) for menu in combinations(items[:-1], size)]
    return Assortments([offer for offer in every if frozenset(offer) not in seen], items)


def by_market(name: str, choices: int, seed: int, replicates: int, draw: int = 0) -> dict[str, float]:
    """How often intervals contain the truth in one market, and how large errors are, relative to what is said."""
    truth = TRUTHS[name](seed)
    counts, row = truth.counts(choices, seed + DRAW_STEP * draw), {}
    found = Bootstrap(counts, replicates=replicates, seed=seed)
    for which, offers in (("known", counts.assortments), ("new", all_new(counts))):
        share, error, shift = found.spread(offers)
        variance = found.misfit.variance(share, error**2 + shift**2, found.misfit.has(offers))
        true, small = truth.shares(offers), truth.shares(offers) < SMALL_SHARE
        row[which], row[f"width {which}"] = covered(share, Z * np.sqrt(variance), true)
        row[f"small {which}"] = covered(share[small], Z * np.sqrt(variance[small]), true[small])[0]
        row[f"error {which}"] = float(np.sqrt(np.mean((share - true) ** 2) / np.mean(variance)))
    return row


def derivatives(worth: Vec, offers: Assortments) -> tuple[Vec, Vec]:
    """A logit's shares, and their derivatives in the utilities."""
    values, places = worth[offers.members], np.arange(offers.n_coordinates)
    share = values / np.bincount(offers.owner, values)[offers.owner]
    slopes, means = np.zeros((share.size, worth.size)), np.zeros((offers.n_offers, worth.size))
    slopes[places, offers.members] = share
    means[offers.owner, offers.members] = share
    return share, slopes - share[:, None] * means[offers.owner]


def best_possible(choices: int, seed: int) -> float:
    """How often the intervals of maximum likelihood with the true Fisher information contain one logit's shares."""
    truth = TRUTHS["one logit"](seed)
    counts = truth.counts(choices, seed)
    items, test = counts.assortments.items, all_new(counts)
    pairs = [truth.shares(Assortments([(item, items[-1])], items))[0] for item in items[:-1]]
    worth = np.array([*(share / (1.0 - share) for share in pairs), 1.0])
    share, slopes = derivatives(worth, counts.assortments)
    information = (slopes.T * (counts.totals[counts.assortments.owner] / share)) @ slopes
    true, at = derivatives(worth, test)
    error = np.sqrt(np.einsum("ij,jk,ik->i", at, np.linalg.pinv(information), at))
    fitted = fit_mnl(counts, smoothing=1e-6).probabilities(test)
    return float((np.abs(fitted - true) <= Z * error).mean())


def show_draws(names: Sequence[str], draws: int, rows: Sequence[Mapping[str, float]]) -> None:
    """The coverage of every market averaged over draws of its choices, beside that of single draws."""
    for which in ("known", "new"):
        often = np.array([row[which] for row in rows]).reshape(len(names), draws)
        means, errors = often.mean(axis=1), often.std(axis=1, ddof=1) / np.sqrt(draws)
        outside = [((part < LEAST) | (part > MOST)).sum() for part in (often, means)]
        print(
            f"{which}: {outside[0]} of {often.size} draws are outside {LEAST:.0%} to {MOST:.0%}, {outside[1]} of "
            f"{len(names)} means of {draws} draws; {means.mean():.1%} on average; sd within markets "
            f"{np.sqrt(often.var(axis=1, ddof=1).mean()):.1%}"
        )
        for name, mean, error, part in zip(names, means, errors, often, strict=True):
            print(f"  {name:<14}{mean:>8.1%} ± {error:.1%}, single draws {part.min():.0%} to {part.max():.0%}")


def show_markets(choices: int, markets: int, replicates: int, draws: int) -> None:
    """The coverage of every market, and of the best intervals there are."""
    kinds = [name for name, size in CELLS if size == 2_000]
    names = [kinds[k % len(kinds)] for k in range(markets)]
    work = [(names[k], choices, FIRST_SEED + k, replicates, draw) for k in range(markets) for draw in range(draws)]
    rows = joblib.Parallel(n_jobs=-1)(joblib.delayed(by_market)(*job) for job in work)
    if draws > 1:
        show_draws(names, draws, rows)
        return
    best = np.array([best_possible(choices, FIRST_SEED + k) for k in range(markets)])
    columns = [(which, np.array([row[which] for row in rows])) for which in ("known", "new")]
    for which, often in (*columns, ("best", best)):
        line = f"{which}: {often.mean():.1%} on average, {often.min():.1%} to {often.max():.1%}, sd {often.std():.1%}"
        print(
            f"{line}; below {LEAST:.0%}: {(often < LEAST).sum()}, above {MOST:.0%}: {(often > MOST).sum()} of {markets}"
        )
    for which, often in columns:
        means = {name: np.mean([row[f"{name} {which}"] for row in rows]) for name in ("width", "small")}
        ratios = np.array([row[f"error {which}"] for row in rows])
        spread = f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
        print(
            f"{which}: width {means['width']:.3f}, shares below {SMALL_SHARE:.0%} {means['small']:.1%}, error by "
            f"what is said {spread}, correlation with coverage {np.corrcoef(ratios, often)[0, 1]:.2f}"
        )


def rescaled(groups: list[tuple[Vec, ...]], wanted: float) -> float:
    """The width of the spread alone, times the least constant with which it covers as often."""
    share, spread, _, truth = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if covered(share, middle * spread, truth)[0] >= wanted else (middle, high)
    return covered(share, high * spread, truth)[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two markets, 10 replicates, three cells")
    parser.add_argument("--markets", type=int, default=10)
    parser.add_argument("--replicates", type=int, default=30)
    parser.add_argument("--half-life", type=float, default=None, help="in choices, for counts that forget")
    parser.add_argument("--by-market", type=int, default=0, metavar="CHOICES", help="coverage market by market")
    parser.add_argument("--draws", type=int, default=1, help="with --by-market: draws of the choices of each market")
    options = parser.parse_args()
    if options.by_market:
        show_markets(options.by_market, options.markets, options.replicates, options.draws)
        return
    markets, replicates = (2, 10) if options.quick else (options.markets, options.replicates)
    print(f"{markets} markets each, {replicates} replicates, intervals of 95 %")
    titles = f"{'covers':>8}{'width':>8}{'spread alone':>14}{'/ rescaled':>12}{'CPU s':>8}"
    print(f"{'truth':<20}{'choices':>8}  {'offers':<7}{titles}")
    for name, choices in CELLS[:3] if options.quick else CELLS:
        seeds = range(FIRST_SEED, FIRST_SEED + markets)
        work = [joblib.delayed(measure)(name, choices, k, replicates, options.half_life) for k in seeds]
        runs = joblib.Parallel(n_jobs=-1)(work)
        seconds = float(np.median([spent for _, spent in runs]))
        for place, which in enumerate(("seen", "unseen")):
            groups = [found[place] for found, _ in runs]
            share, spread, whole, truth = (np.concatenate(parts) for parts in zip(*groups, strict=True))
            often, width = covered(share, whole, truth)
            alone = covered(share, spread, truth)[0]
            ratio = width / rescaled(groups, often)
            line = f"{name:<20}{choices:>8,}  {which:<7}{often:>8.1%}{width:>8.3f}{alone:>14.1%}{ratio:>12.2f}"
            print(line + f"{seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
