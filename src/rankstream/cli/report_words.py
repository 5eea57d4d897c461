"""The sentences of a report: what was read, what is proven, and the few for whoever reads no further."""

from typing import TYPE_CHECKING, Any

from rankstream.cli.asking import kind_of, words_of
from rankstream.cli.fit import as_time
from rankstream.cli.options import ReadingOptions
from rankstream.cli.origin import origin_lines, prediction_lines
from rankstream.decide.decision import named
from rankstream.service.page.blocks import Section, percent, table

if TYPE_CHECKING:
    from rankstream.cli.asking import Model
    from rankstream.data.readers import Reading
    from rankstream.estimation.intervals import Bootstrap


def in_short(model: Any, found: "Reading", content: dict[str, Any]) -> Section:
    """The few sentences for whoever reads no further."""
    import numpy as np

    from rankstream.service.page.sections import joined, type_words

    counts = found.counts
    seen = counts.totals[counts.assortments.owner] > 0.0
    apart = np.abs(model.probabilities(counts.assortments) - counts.frequencies())[seen]
    words = [
        f"From {counts.observations:,.12g} choices among {items_in(model)}: predicted shares are "
        f"{100 * float(apart.mean()):.2f} percentage points from the observed ones on average."
    ]
    nothing = content["model"]["no_choice"]
    words += [
        f"The largest customer type is {type_words(one['ranking'], nothing)}: {percent(one['share'])}."
        for one in content["model"]["segments"][:1]
    ]
    if content["drift"] is not None:
        moved = joined([one["item"] for one in content["drift"]["items"]]) or f"{content['drift']['moved']:,} offers"
        has = content["drift"]["items"] or content["drift"]["moved"]
        words.append(f"Over time these changed beyond noise: {moved}." if has else "No change beyond noise.")
    if content["comparison"] is not None:
        words.append(content["comparison"]["verdict"])
    decision = content["decision"]
    if decision is not None:
        sure = ", proven to be the best" if decision["proven"] else ""
        words.append(f"Offer {named(tuple(decision['offer']))}: {decision['value']:.4g} per customer{sure}.")
    return Section("short", "In short", tuple(words))


def items_in(whole: Any) -> str:
    """How many items a model or offers have, each counted once, whatever its prices."""
    from rankstream.models.prices import levels_of, own_items

    if levels_of(whole) is None:
        return f"{len(whole.items):,} items"
    return f"{len(own_items(whole)):,} items at price levels"


def read_section(found: "Reading", name: str, reading: ReadingOptions) -> Section:
    """What was read, and what was skipped."""
    from rankstream.service.page.sections import joined

    counts, offers = found.counts, found.counts.assortments
    span = "" if found.times is None else f", from {as_time(found.times[0])} to {as_time(found.times[1])}"
    good = found.rows - found.problems.total
    words = [
        f"{name} has {found.rows:,} records, read as {found.format}{span}: {counts.observations:,.12g} "
        f"choices from {offers.n_offers:,} different offers of {items_in(offers)}.",
        f"{good:,} records were used, and {found.problems.total:,} were skipped."
        if found.problems.total
        else "Nothing was skipped.",
    ]
    if reading.outside_share is not None:
        words.append(f"It is assumed that {100 * reading.outside_share:g} % bought nothing, which was not recorded.")
    parts = []
    if found.problems.total:
        first = {one.kind: str(one) for one in reversed(found.problems.first)}
        rows = [(kind, f"{number:,}", first.get(kind, "")) for kind, number in found.problems.by_kind.most_common()]
        parts.append(table("What was skipped", ("problem", "records", "the first of them"), rows, numbers=3))
    order = (-counts.totals).argsort(kind="stable").tolist()
    made = [(joined(offers.offers[place]), f"{counts.totals[place]:,.12g}") for place in order]
    parts.append(table("The offers made most often", ("offer", "choices"), made, most=10, which="most frequent"))
    return Section("read", "What was read", tuple(words), tuple(parts))


def proven(model: "Model", many: "Bootstrap | None", excuse: str) -> list[str]:
    """Where the model comes from, and what is proven about it, in plain words."""
    rankings = len(getattr(model, "weights", ())) if kind_of(model) == "rankings" else None
    words = [
        f"A model of {items_in(model)}: {words_of(kind_of(model), rankings)}.",
        *origin_lines(model.about),
    ]
    noted = model.about.get("certificate")
    numbers = noted if isinstance(noted, dict) else {}
    distance, least = (numbers.get(name) for name in ("distance", "proven_least_distance"))
    if not isinstance(distance, int | float) or not isinstance(least, int | float):
        words.append("The model file does not say what is proven: 'rankstream fit' writes that into it.")
    elif distance <= 1e-9:
        words.append("In plain words: it fits what was observed exactly.")
    else:
        part = max(0.0, min(1.0, least / distance))
        words.append(
            f"In plain words: {100 * part:.0f} % of what is left between the model and the observed shares is proven "
            "to be out of reach for any mixture of rankings; the best of them could gain at most the rest."
        )
    words += prediction_lines(model.about)
    known = "" if many is None else f"Intervals come from {len(many.models)} refits to simulated choices."
    return [*words, known or excuse]
