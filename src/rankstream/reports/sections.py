"""What a model says, section by section: how it fits, who the customers are, who gains, and what prices do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data import ChoiceCounts, price_text, restrict
from rankstream.models import ChoiceModel, Substitution
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Chart, Section, TableBlock, brief, percent, share_and_ends

MOST_DOTS = 1500  # pairs of offer and item in a chart: more would make a page of megabytes
MOST_DRAWN = 20  # items in a chart of who gains
MATRIX = 12  # items up to which the table of who gains has a column for each
MOST_LINES, MOST_CURVES = 8, 30  # items in the chart and in the table of demand by price
ELASTICITY = "Price elasticity: the change in demand, in %, if the price rises by 1 %"
MAX_NAMED_ITEMS = 5  # substitutes that a row names where there are more


def fit_section(model: ChoiceModel, counts: ChoiceCounts, sentences: Iterable[str] = ()) -> Section:
    """How near the predicted shares are to the observed ones; ``sentences`` say what is proven."""
    kept = _most_frequent(counts)
    offers, owner = kept.assortments, kept.assortments.owner
    totals, observed, predicted = kept.totals[owner], kept.frequencies(), model.probabilities(offers)
    low, high = wilson(observed, kept.effective_totals[owner])
    missed = ~((low <= predicted + 1e-12) & (predicted <= high + 1e-12))
    apart = np.abs(predicted - observed)
    some = "" if kept is counts else f" of the {offers.n_offers:,} most frequent offers"
    words = [
        *fit_warnings(getattr(model, "about", {})),
        f"Predicted and observed shares{some} are {100 * float(apart.mean()):.2f} percentage points apart on average.",
        f"Chance alone explains {int((~missed).sum()):,} of {missed.size:,} differences: the prediction is within the "
        f"95 % interval of what was observed.{' The others are orange triangles in the chart.' * bool(missed.any())}",
    ]
    items = [item for offer in offers.offers for item in offer]
    rows = [
        (
            joined(offers.offers[int(owner[place])]), items[place], f"{totals[place]:,.12g}",
            percent(float(observed[place]), (float(low[place]), float(high[place]))), percent(float(predicted[place])),
        )
        for place in np.argsort(-apart * np.sqrt(totals), kind="stable").tolist()
    ]  # fmt: skip
    heads = ("offer", "item", "choices", "observed [95 % interval]", "predicted")
    shown = TableBlock(
        "Predicted and observed shares, the furthest apart first", heads, rows, numbers=2, which="furthest"
    )
    columns = (part.tolist() for part in (observed, low, high, predicted))
    values = [list(row) for row in zip(map(str, items), *columns, strict=True)]
    chart = Chart("dots", "Predicted against observed shares", values, shown)
    return Section("fit", "How well it fits, and what is proven", (*sentences, *words), (chart,))


def _most_frequent(counts: ChoiceCounts) -> ChoiceCounts:
    """The offers with choices; of a great many, those that were made most often."""
    offers, totals = counts.assortments, counts.totals
    sizes = np.diff(offers.indptr)
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0]
    wanted = np.sort(order[np.cumsum(sizes[order]) <= max(MOST_DOTS, int(sizes.max()))])
    return counts if wanted.size == offers.n_offers else restrict(counts, wanted)


def types_section(
    model: Any, shares: Mapping[tuple[Label, ...], Any], rankings: Sequence[Mapping[str, Any]] = (), top: int = 10
) -> Section:
    """The customer types by their first two choices, and the largest whole rankings where they are known.

    ``shares`` has of each type its share, or the share and the ends of its interval.
    """
    nothing = model.no_choice
    found = {key: share_and_ends(share) for key, share in shares.items()}
    alone = [] if nothing is None else [f"({nothing})"]  # marks who takes nothing first or second
    rows = [
        (" > ".join([*map(str, key), *(alone if len(key) < 2 else [])]), percent(share, ends))
        for key, (share, ends) in found.items()
    ]
    known = all(ends is not None for _, ends in found.values())
    caption = "Customer types by their first two choices"
    caption += f", with {interval_words(model.about)}" if known and found else ""
    shown = TableBlock(caption, ("first choice > second choice", "share of customers"), rows, most=top, which="largest")
    parts: list[Any] = [shown]
    if found:
        values = [_point(share, name=row[0]) for row, share in list(zip(rows, shares.values(), strict=True))[:top]]
        parts = [Chart("bars", "The largest customer types", values, shown)]
    if rankings:
        whole = [(joined([*one["ranking"], *alone], mark=" > "), percent(one["share"])) for one in rankings]
        parts.append(TableBlock("The largest types by all of their choices", ("from first to last", "share"), whole))
    words = "A type is what customers would take first, and what they would take if that were not on offer."
    if nothing is not None:
        words += f" ({nothing}) marks where they would rather buy nothing than any other item."
    return Section("types", "Who the customers are", (words, *at_usual(model)), tuple(parts))


def at_usual(model: Any) -> list[str]:
    """At which prices an answer about everything is, as names show them; nothing for a model without prices."""
    return [] if model.price_levels is None else ["All prices are the usual (most frequent) ones."]


def substitution_section(moves: Substitution, ends: Mapping[Label, Any] | None = None, model: Any = None) -> Section:
    """Who gains when an item is gone; ``ends`` are the shares from everything, with the ends of their intervals.

    ``model`` says at which prices that is.
    """
    asked = [place for place in range(len(moves.items)) if moves.shares[place].any()]
    largest = sorted(asked, key=lambda place: -float(moves.before[place]))[:MOST_DRAWN]
    drawn = moves.among([moves.items[place] for place in largest])
    shown = _gains(moves, [place for place in asked if moves.items[place] != moves.no_choice], ends)
    parts: tuple[Any, ...] = (shown,)
    if drawn.items:
        rows = [item for item in drawn.items if item != moves.no_choice]
        fields = ("item", "share", "gains", "gains_intervals")
        flows, matrix = (
            [{name: one.get(name) for name in fields} for one in part.to_json(rows)] for part in (moves, drawn)
        )
        parts = (
            Chart("flows", "Where the buyers of one item go", [one for one in flows if one["gains"]], shown),
            Chart("matrix", "Where the buyers of every item go, in % of its buyers", matrix, shown),
        )
    words = ["What the buyers of an item take when it is not on offer."]
    words += [] if model is None else at_usual(model)
    if moves.low is not None:
        words.append("Grey: the interval starts at 0, so this gain may be chance.")
    if len(drawn.items) < len(moves.items):
        words.append(f"The chart of all items shows the {len(drawn.items)} most chosen of {len(moves.items):,} items.")
    return Section("substitution", "Who gains when an item is gone", tuple(words), parts)


def gained(moves: Substitution, row: int, column: int) -> str:
    """Which share of the buyers of one item takes another, with its interval where that is known."""
    ends = None if moves.low is None or moves.high is None else (moves.low[row, column], moves.high[row, column])
    return percent(moves.shares[row, column], ends)


def _gains(moves: Substitution, asked: Sequence[int], ends: Mapping[Label, Any] | None) -> TableBlock:
    rows = []
    for row in asked:
        item = moves.items[row]
        share = percent(float(moves.before[row]), None if ends is None else share_and_ends(ends[item])[1])
        if len(moves.items) <= MATRIX:
            cells = ["" if column == row else gained(moves, row, column) for column in range(len(moves.items))]
        else:
            others = [moves.items.index(other) for other in list(moves.gains(item))[:MAX_NAMED_ITEMS]]
            cells = ["; ".join(f"{moves.items[n]} {gained(moves, row, n)}" for n in others if moves.shares[row, n] > 0)]
        rows.append((item, share, *cells))
    known = "" if moves.low is None else f", with {moves.interval_name}"
    if len(moves.items) <= MATRIX:
        heads = ("gone", "share if all offered", *(f"to {item}" for item in moves.items))
        return TableBlock(f"Where buyers go, as shares of the item's buyers{known}", heads, rows)
    return TableBlock(f"Where most buyers go{known}", ("gone", "share if all offered", "who gains"), rows, numbers=3)


def demand_section(curves: Mapping[Label, Mapping[float, Any]]) -> Section:
    """The share of each item by its own price, beside the others at usual prices; of many items, the most chosen."""
    largest = sorted(curves, key=lambda item: -max(share_and_ends(share)[0] for share in curves[item].values()))
    listed = [item for item in curves if item in set(largest[:MOST_CURVES])]
    drawn = [item for item in listed if item in set(largest[:MOST_LINES])]
    points = [(item, price, curves[item][price]) for item in listed for price in sorted(curves[item])]
    rows = [(item, price_text(price), percent(*share_and_ends(share))) for item, price, share in points]
    shown = TableBlock("Demand by price", ("item", "price", "share"), rows, most=len(rows))
    values = [_point(share, item=str(item), price=price) for item, price, share in points]
    chart = Chart("demand", "Demand by price", {"drawn": [str(item) for item in drawn], "points": values}, shown)
    words = ["The share of an item by its own price, with everything else at its usual price."]
    if len(drawn) < len(curves):
        what = "the table all" if len(listed) == len(curves) else f"the table the {len(listed)} most chosen"
        words.append(f"The chart shows the {len(drawn)} most chosen of {len(curves):,} items, {what}.")
    return Section("demand", "What prices do", tuple(words), (chart, _elasticities(curves, largest[:MOST_CURVES])))


def _point(share: Any, **names: Any) -> dict[str, Any]:
    value, ends = share_and_ends(share)
    return names | {"share": value} | ({} if ends is None else {"low": ends[0], "high": ends[1]})


def _elasticities(curves: Mapping[Label, Mapping[float, Any]], items: Sequence[Label]) -> TableBlock:
    """By how many percent demand falls for one percent of price, between the ends of each curve; and the revenue."""
    rows = []
    for item in items:
        low, high = min(curves[item]), max(curves[item])
        cheap, dear = (share_and_ends(curves[item][price])[0] for price in (low, high))
        best = max(curves[item], key=lambda price: price * share_and_ends(curves[item][price])[0])
        known = 0.0 < low < high and min(cheap, dear) > 0.0
        elasticity = f"{np.log(dear / cheap) / np.log(high / low):.2f}" if known else ""
        rows.append((item, f"{price_text(low)} to {price_text(high)}", elasticity, price_text(best)))
    heads = ("item", "prices", "elasticity", "price with the highest revenue")
    return TableBlock(f"{ELASTICITY}, without intervals", heads, rows)


def joined(offer: Iterable[Label], most: int = 12, mark: str = ", ") -> str:
    """Items in a cell or a sentence, the first of a great many."""
    names = [brief(item) for item in offer]
    more = len(names) - most
    return mark.join(names if more <= 0 else [*names[:most], f"{more:,} more"])
