"""Learning while earning: what customers pay while offers are tried, and how good the offer is in the end.

Simulated markets of 10 items (mixed logit, five kinds of customers), 2,000 customers in batches of 50, at most 5 items
an offer. All ways begin with the same first batch and see the same customers' luck market by market, so that
differences are paired. Run with ``python benchmarks/next_offer.py [markets] [picture.png]``; 20 markets by default.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Label, Vec
from rankstream.data.simulate import Market, market
from rankstream.decide import best_offer, next_offer
from rankstream.decide.offer_values import earnings
from rankstream.models.parametric.latent_class import LatentClassModel

CUSTOMERS, BATCH, AT_MOST, REDRAWS = 2000, 50, 5, 5
WAYS = ("random", "greedy", "thompson", "ucb")


def true_model(one: Market) -> LatentClassModel:
    """The truth as a model that can be decided by: mixed logits are latent classes."""
    attraction = one.truth.utilities / one.truth.utilities.sum(axis=1, keepdims=True)
    return LatentClassModel(
        items=one.truth.items, no_choice_code=len(one.truth.items) - 1, mixture=one.truth.mixture,
        attraction=attraction, log_likelihood=0.0, iterations=0, converged=True, n_parameters=0,
    )  # fmt: skip


def random_menu(items: tuple[Label, ...], random: np.random.Generator) -> tuple[Label, ...]:
    """Any offer of at most five items, its size drawn first."""
    size = int(random.integers(1, AT_MOST + 1))
    picked = sorted(random.choice(len(items) - 1, size=size, replace=False).tolist())
    return (*(items[code] for code in picked), items[-1])


def play(way: str, seed: int) -> tuple[Vec, float]:
    """What each batch earned, as a part of the best offer's, and the loss of the offer that is best in the end."""
    one = market(seed)
    truth, items = true_model(one), one.truth.items
    margins = dict(zip(items[:-1], np.random.default_rng(1000 + seed).uniform(0.2, 1.0, len(items) - 1), strict=True))
    gains = np.array([*margins.values(), 0.0])
    best = best_offer(truth, margins, at_most=AT_MOST).value
    random, luck = np.random.default_rng(seed), np.random.default_rng(5000 + seed)
    counts: ChoiceCounts | None = None
    earned, last = np.zeros(CUSTOMERS // BATCH), None
    for batch in range(earned.size):
        if counts is None or way == "random":
            menu = random_menu(items, random)
        else:
            how: Any = way
            last = next_offer(
                counts, margins, how, at_most=AT_MOST, no_choice=items[-1], seed=batch, start=last, redraws=REDRAWS
            )
            menu = last.menu
        single = Assortments([menu], items)
        shares = truth.probabilities(single)
        earned[batch] = float(shares @ gains[single.members]) / best
        if counts is None:
            counts = ChoiceCounts(single)
        elif frozenset(menu) not in {frozenset(offer) for offer in counts.assortments.offers}:
            counts = counts.extend([menu])
        place = counts.assortments.place(menu)
        counts.observe_coordinates([place[item] for item in menu], luck.multinomial(BATCH, shares / shares.sum()))
    assert counts is not None
    final = next_offer(counts, margins, "greedy", at_most=AT_MOST, no_choice=items[-1])
    return earned, 1.0 - float(earnings(truth, [final.menu], gains)[0]) / best


def mean(values: Vec) -> str:
    """A mean with its standard error, in percent."""
    return f"{100 * values.mean():6.2f} ({100 * values.std(ddof=1) / np.sqrt(values.size):.2f})"


def draw(curves: dict[str, Vec], path: Path) -> None:
    """Earnings over time: what each batch earned, of the best offer's, as means and standard errors over markets."""
    from matplotlib.figure import Figure

    from rankstream._core.files import save_picture
    from rankstream.plots.models import COLOURS, finish

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for (way, table), colour in zip(curves.items(), COLOURS, strict=False):
        middle, error = 100 * table.mean(axis=0), 100 * table.std(axis=0, ddof=1) / np.sqrt(len(table))
        customers = BATCH * np.arange(1, middle.size + 1)
        axes.plot(customers, middle, color=colour, label=way)
        axes.fill_between(customers, middle - error, middle + error, color=colour, alpha=0.2, linewidth=0)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    finish(axes, xlabel="customers", ylabel="earned, % of the best offer's", title="Earning while learning")
    save_picture(figure, path)


def main(markets: int, picture: Path | None) -> None:
    """Print the table, with standard errors over markets, and paired differences from greedy."""
    curves, losses = {}, {}
    for way in WAYS:
        began = perf_counter()
        played = [play(way, seed) for seed in range(markets)]
        curves[way], losses[way] = np.array([row for row, _ in played]), np.array([loss for _, loss in played])
        print(f"{way:9} earned {mean(curves[way].mean(axis=1))} % while learning, final loss {mean(losses[way])} %, "
              f"{(perf_counter() - began) / markets:.1f} s a market", flush=True)  # fmt: skip
    print("\npaired differences from greedy, over the same markets (standard error); within two of them it is noise:")
    for way in WAYS:
        if way != "greedy":
            earned = curves[way].mean(axis=1) - curves["greedy"].mean(axis=1)
            print(f"{way:9} earned {mean(earned)} points, final loss {mean(losses[way] - losses['greedy'])} points")
    if picture is not None:
        draw(curves, picture)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 20, Path(words[1]) if len(words) > 1 else None)
