"""The sentences of a report: what was read, and what is proven about the model."""

from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import as_time, plural
from rankstream.models.files import kind_of, words_of
from rankstream.reports.blocks import Section, table
from rankstream.reports.origin import origin_lines, prediction_lines

if TYPE_CHECKING:
    from rankstream.data.readers import Reading
    from rankstream.models.files import Model


def items_in(whole: Any) -> str:
    """How many items a model or offers have, each counted once, whatever its prices."""
    from rankstream.models.prices import levels_of, own_items

    if levels_of(whole) is None:
        return plural(len(whole.items), "item")
    return f"{plural(len(own_items(whole)), 'item')} at price levels"


def read_section(found: "Reading", name: str, outside_share: float | None = None) -> Section:
    """What was read, and what was skipped."""
    from rankstream.reports.overview import differences
    from rankstream.reports.sections import joined

    counts, offers = found.counts, found.counts.assortments
    span = "" if found.times is None else f", from {as_time(found.times[0])} to {as_time(found.times[1])}"
    good = found.rows - found.problems.total
    words = [
        f"{name} has {plural(found.rows, 'record')}, read as {found.format}{span}: "
        f"{plural(counts.observations, 'choice')} from {plural(offers.n_offers, 'different offer')} "
        f"of {items_in(offers)}.",
        f"{good:,} records were used, and {found.problems.total:,} were skipped."
        if found.problems.total
        else "Nothing was skipped.",
    ]
    words += [] if found.account is None else [found.account.summary()]
    words += [*found.notes, *(column.sentence for column in found.unused)]
    if outside_share is not None:
        words.append(f"Assumed: {100 * outside_share:g} % bought nothing. The data do not contain this share.")
    parts = []
    if found.problems.total:
        first = {one.kind: str(one) for one in reversed(found.problems.first)}
        rows = [(kind, f"{number:,}", first.get(kind, "")) for kind, number in found.problems.by_kind.most_common()]
        parts.append(table("Skipped records", ("problem", "records", "first case"), rows, numbers=3))
    order = (-counts.totals).argsort(kind="stable").tolist()
    usual = offers.offers[order[0]]
    words.append(f"The most frequent offer is {joined(usual, 100)}.")
    made = [
        (differences(usual, offers.offers[place]) or "the most frequent offer", f"{counts.totals[place]:,.12g}")
        for place in order
    ]
    heads = ("what differs from the most frequent offer", "choices")
    parts.append(table("The most frequent offers", heads, made, most=10, which="most frequent"))
    return Section("read", "Data", tuple(words), tuple(parts))


def proven(model: "Model", intervals: str) -> list[str]:
    """Return where the model comes from, and what is proven about it, in plain words."""
    rankings = len(getattr(model, "weights", ())) if kind_of(model) == "rankings" else None
    words = [f"A model of {items_in(model)}: {words_of(kind_of(model), rankings)}.", *origin_lines(model.about)]
    noted = model.about.get("certificate")
    numbers = noted if isinstance(noted, dict) else {}
    distance, least = (numbers.get(name) for name in ("distance", "proven_least_distance"))
    if not isinstance(distance, int | float) or not isinstance(least, int | float):
        words.append("The model file has no certificate: `rankstream fit` writes one.")
    elif distance <= 1e-9:
        words.append("In plain words: it fits the observed shares exactly.")
    else:
        part = 100 * max(0.0, min(1.0, least / distance))
        words.append(f"In plain words: at least {part:.0f} % of this distance remains with any ranking model (proven).")
    return [*words, *prediction_lines(model.about), intervals]
