"""How well offers never seen are predicted: RMSE of probabilities against the truth, mean over seeds, one run.

The models are those that people would pick, and ours. Ratios are to the best rival (mnl, latent-class, markov-chain).
"""

import argparse
import time
from collections.abc import Callable, Iterator
from math import comb

import numpy as np

import rankstream as rs
from rankstream import Assortments, ChoiceCounts, Estimate, RankingModel, methods, models, simulate
from rankstream._core.types import Vec
from rankstream.baselines import fit_latent_class, fit_markov_chain, fit_mnl
from rankstream.models import ChoiceModel

RIVALS = ("mnl", "latent-class", "markov-chain")
SIZES = (500, 2_000, 10_000, 50_000, 0)
EXACT = 100_000.0  # exact frequencies stand for this number of choices from every offer
Truth = Callable[[Assortments], Vec]


def primal_dual(counts: ChoiceCounts) -> RankingModel:
    """The paper's way, to its own stopping rule."""
    fit: Estimate[RankingModel] = rs.estimate(counts, method=methods.PrimalDual(max_rounds=3_000))
    return fit.model


MODELS: dict[str, Callable[[ChoiceCounts], ChoiceModel]] = {
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
    "primal-dual": primal_dual,
    "  redrawn, 3 draws": lambda counts: models.redraw(
        primal_dual(counts), counts.assortments, models.fit_prior(counts)
    ),
    "max-entropy": lambda counts: models.fit_max_entropy(counts).model,
    "  prior of 0.2": lambda counts: models.fit_max_entropy(counts, "default").model,
    "  stacked prior": lambda counts: models.fit_max_entropy(counts, "stacked").model,
}


def sparse(method: methods.Method) -> Callable[[ChoiceCounts], ChoiceModel]:
    """A sparse fit with other settings."""

    def fit(counts: ChoiceCounts) -> ChoiceModel:
        found: Estimate[RankingModel] = rs.estimate(counts, method=method)
        return found.model

    return fit


SPARSE: dict[str, Callable[[ChoiceCounts], ChoiceModel]] = {
    **{
        name: sparse(methods.PrimalDual(distance=name, max_rounds=3_000))
        for name in ("l1", "l2", "linf", "max-difference")
    },
    "nearest": sparse(methods.Nearest(gap=1e-4)),
}


def markets() -> Iterator[tuple[str, Callable[[int], tuple[Assortments, Assortments, Truth]]]]:
    """Named makers of (training offers, test offers, true probabilities) from a seed."""

    def mixed(segments: int, spread: float) -> Callable[[int], tuple[Assortments, Assortments, Truth]]:
        def make(seed: int) -> tuple[Assortments, Assortments, Truth]:
            market = simulate.market(seed, 10, segments, spread, n_offers=40, unseen=True)
            return market.assortments, market.test, market.truth.probabilities

        return make

    def types(seed: int) -> tuple[Assortments, Assortments, Truth]:
        market = simulate.market(seed, 10, n_offers=40, unseen=True)
        random = np.random.default_rng(seed)
        orders = np.array([random.permutation(11) for _ in range(10)])
        model = RankingModel.from_codes(market.assortments.items, orders, random.dirichlet(np.ones(10)))
        return market.assortments, market.test, model.probabilities

    for segments, spread in ((1, 5.0), (5, 5.0), (10, 100.0)):
        yield f"mixed logit, K = {segments}, L = {spread:g}", mixed(segments, spread)
    yield "ten rankings", types


def ballots(path: str) -> Callable[[int], tuple[Assortments, Assortments, Truth]]:
    """Real rankings (PrefLib): choices from random subsets of 1 to 5 candidates, plus "nobody further".

    40 subsets to learn from and 100 to test on; with few candidates, two thirds of all there are and the others.
    """
    nobody = "nobody further"
    candidates = [name for name in rs.read(path).counts.assortments.items if name != nobody]
    largest = min(5, len(candidates))
    n_menus = min(140, sum(comb(len(candidates), size) for size in range(1, largest + 1)))
    n_train = min(40, 2 * n_menus // 3)

    def make(seed: int) -> tuple[Assortments, Assortments, Truth]:
        random = np.random.default_rng(seed)
        menus: dict[frozenset[str], list[str]] = {}
        while len(menus) < n_menus:
            size = int(random.integers(1, largest + 1))
            menu = [candidates[k] for k in sorted(random.choice(len(candidates), size, replace=False).tolist())]
            menus.setdefault(frozenset(menu), menu)
        every = list(menus.values())
        counts = rs.read(path, offers=every).counts
        parts = np.split(counts.frequencies(), counts.assortments.indptr[1:-1])
        shares = dict(zip(counts.assortments.offers, parts, strict=True))
        items = counts.assortments.items
        whole = [next(offer for offer in shares if set(offer) - {nobody} == set(menu)) for menu in every]

        def truth(offers: Assortments) -> Vec:
            return np.concatenate([shares[offer] for offer in offers.offers])

        return Assortments(whole[:n_train], items), Assortments(whole[n_train:], items), truth

    return make


def counts_of(offers: Assortments, truth: Truth, size: int, seed: int) -> ChoiceCounts:
    """Sampled choices; size 0 stands for exact frequencies."""
    shares = truth(offers)
    if not size:
        return ChoiceCounts(offers, shares * EXACT)
    drawn = np.random.default_rng([seed, size]).multinomial(size, shares / shares.sum())
    return ChoiceCounts(offers, drawn)


def main() -> None:
    """Print one table per kind of market."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed and two sizes")
    parser.add_argument("--ballots", help="a PrefLib file of real rankings instead of simulated markets")
    parser.add_argument("--sparse", action="store_true", help="only sparse fits: primal-dual by distance, and nearest")
    parser.add_argument("--only", nargs="+", help="only these rows")
    options = parser.parse_args()
    compared = SPARSE if options.sparse else MODELS
    if options.only:
        compared = {name: fit for name, fit in compared.items() if name.strip() in options.only}
    seeds, sizes = (1, (2_000, 0)) if options.quick else (options.seeds, SIZES)
    for name, make in [(options.ballots, ballots(options.ballots))] if options.ballots else markets():
        learned, others, _ = make(0)
        print(f"\n{name}; {learned.n_offers} offers, tested on {others.n_offers} others; ", end="")
        print(f"RMSE x 1000, mean of {seeds} seeds")
        print(
            f"{'choices':<20}" + "".join(f"{size:>10,}" if size else f"{'exact':>10}" for size in sizes) + "   seconds"
        )
        table: dict[str, list[float]] = {}
        for model, fit in compared.items():
            seconds = 0.0
            for size in sizes:
                errors = []
                for seed in range(seeds):
                    offers, test, truth = make(seed)
                    counts = counts_of(offers, truth, size, seed)
                    start = time.perf_counter()
                    fitted = fit(counts)
                    seconds += time.perf_counter() - start
                    errors.append(float(np.sqrt(np.mean((fitted.probabilities(test) - truth(test)) ** 2))))
                table.setdefault(model, []).append(1e3 * float(np.mean(errors)))
            shown = "".join(f"{value:>10.1f}" for value in table[model])
            print(f"{model:<20}{shown}{seconds / len(sizes) / seeds:>10.2f}", flush=True)
        if not set(RIVALS) <= compared.keys():
            continue
        best = np.min([table[rival] for rival in RIVALS], axis=0)
        for model in (name for name in ("max-entropy", "  stacked prior") if name in compared):
            ratios = "".join(f"{value:>10.2f}" for value in np.array(table[model]) / best)
            print(f"{model.strip()[:7]} / rival".ljust(20) + ratios)


if __name__ == "__main__":
    main()
