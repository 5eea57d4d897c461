"""What ``rankstream report`` puts on its page: what was read, the model, drift, rivals and the best offer."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import progress
from rankstream._core.version import VERSION
from rankstream.cli.asking import method_of
from rankstream.cli.compare import as_content
from rankstream.cli.decide import constraints, told
from rankstream.cli.drift import of_choices
from rankstream.cli.items import read_items
from rankstream.cli.options import ReadingOptions
from rankstream.cli.pricing import all_names, demand_curves
from rankstream.cli.refitting import check_choices, refitted_to
from rankstream.cli.report_words import in_short, proven, read_section
from rankstream.cli.show import MOST_ITEMS, describe_model
from rankstream.service.page.blocks import Section, Sheet, render

if TYPE_CHECKING:
    from rankstream.cli.asking import Model
    from rankstream.data.readers import Reading
    from rankstream.decide.decision import Decision
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.evaluate.comparison import Comparison

SLICES = 12
"""Parts of as many choices each, in the order of time, that shares are shown of."""
RIVALS = ("mnl", "latent-class", "markov-chain")
PRICED = ("mnl-price", "latent-class-price")


@dataclass(frozen=True)
class Wanted:
    """What was asked for at the shell; ``replicates`` and ``folds`` are None without intervals and comparison."""

    model: Path
    data: Path
    margins: Path | None
    at_most: int | None
    top: int
    replicates: int | None
    rivals: list[str]
    folds: int | None
    budget: float
    seed: int


def make_report(wanted: Wanted, reading: ReadingOptions) -> tuple[str, dict[str, Any]]:
    """The page, and what is on it as JSON."""
    from rankstream.models.files import load_model

    model: Any = load_model(wanted.model)
    if len(model.items) < 2:
        raise ValueError("The model knows one item only: there is nothing to report.")
    reading = reading.as_fitted(model)
    items = None if wanted.margins is None else _items(model, wanted, reading)
    found = reading.read(wanted.data, time_slices=SLICES)
    check_choices(model, found.counts, wanted.data)
    many, excuse = _refits(model, found, wanted)
    sheet, content = Sheet(), _content(model, found, wanted, many)
    sections = [
        read_section(found, wanted.data.name, reading),
        *model_sections(sheet, model, found, many, content, excuse, wanted),
        changes(sheet, found, content),
        rivals(sheet, model, found, wanted, content),
        offers(sheet, model, items, many, wanted, content),
    ]
    sections.insert(0, in_short(model, found, content))
    source = f"Made by rankstream {VERSION} from {wanted.model.name} and {wanted.data.name}, seed {wanted.seed}."
    page = render("report.html", title=f"What customers choose: {wanted.data.name}", source=source, sections=sections)
    return page, content


def _content(model: "Model", found: "Reading", wanted: Wanted, many: "Bootstrap | None") -> dict[str, Any]:
    read = {"file": str(wanted.data), "records": found.rows, "format": found.format, "skipped": found.problems.total}
    read |= {"choices": found.counts.observations, "offers": found.counts.assortments.n_offers}
    return {"read": read, "model": describe_model(model, wanted.top, wanted.seed, many)}


def _refits(model: "Model", found: "Reading", wanted: Wanted) -> "tuple[Bootstrap | None, str]":
    """Refits for intervals, or why there are none."""
    if wanted.replicates is None:
        return None, "Intervals were not asked for: leave out --no-intervals to have them."
    try:
        return refitted_to(model, found.counts, wanted.replicates, wanted.seed), ""
    except ValueError as error:
        return None, f"There are no intervals: {error}"


def model_sections(
    sheet: Sheet,
    model: Any,
    found: "Reading",
    many: "Bootstrap | None",
    content: dict[str, Any],
    excuse: str,
    wanted: Wanted,
) -> list[Section]:
    """How it fits, who the customers are, who gains, and what prices do."""
    from rankstream.models.answers import favourites, most_chosen
    from rankstream.service.page import sections

    levels, gone = model.price_levels, most_chosen(model, MOST_ITEMS)
    moves = model.substitution(None, gone) if many is None else many.substitution(gone=gone)
    ends = None if many is None else many.predict(moves.items)
    types: dict[Any, Any] = favourites(moves, model.no_choice)
    if many is not None:
        types = dict(many.favourites(model.no_choice, gone=gone))
    rankings = content["model"]["segments"] if content["model"]["segments_by"] == "whole rankings" else []
    fit = sections.fit_section(sheet, model, found.counts, proven(model, many, excuse))
    who = sections.types_section(sheet, model, types, rankings, wanted.top)
    gains = sections.substitution_section(sheet, moves, ends, model)
    made = [fit, who, gains]
    if levels is not None and any(len(prices) > 1 for prices in levels.levels.values()):
        made.append(sections.demand_section(sheet, demand_curves(model, None, None, many)))
    return made


def changes(sheet: Sheet, found: "Reading", content: dict[str, Any]) -> Section:
    """What changed between the halves of the choices, where their times are known."""
    import numpy as np

    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.drift import drift_report
    from rankstream.service.page.findings import drift_section

    content["drift"] = None
    slices, title = found.slices or [], "What changed over time"
    if len(slices) < 2 or not found.slice_times:
        words = "The choices have no times that differ: add a column of times to see what changed."
        return Section("drift", title, (words,))
    half, offers = len(slices) // 2, found.counts.assortments
    before, after = (
        ChoiceCounts(offers, np.sum([one.tallies for one in part], axis=0)) for part in (slices[:half], slices[half:])
    )
    try:
        report = drift_report(before, after)
    except ValueError as error:
        return Section("drift", title, (f"It was not tested what changed: {error}",))
    content["drift"] = of_choices(report)
    return drift_section(sheet, report, slices, found.slice_times)


def rivals(sheet: Sheet, model: "Model", found: "Reading", wanted: Wanted, content: dict[str, Any]) -> Section:
    """How well other kinds of models predict, or why they were not compared."""
    from rankstream.service.page.findings import comparison_section

    content["comparison"] = None
    title = "Compared with other kinds of models"
    if wanted.folds is None:
        return Section("comparison", title, ("This was not asked for: leave out --no-compare to have it.",))
    try:
        compared = _compared(model, found, wanted)
    except ValueError as error:
        if wanted.rivals:
            raise
        return Section("comparison", title, (f"There is no comparison: {error}",))
    content["comparison"] = as_content(compared)
    return comparison_section(sheet, compared)


def _compared(model: "Model", found: "Reading", wanted: Wanted) -> "Comparison":
    from rankstream.evaluate.compare import compare, names_for

    known = names_for(found.counts)
    usual = [method_of(model), *(name for name in (*RIVALS, *PRICED) if name in known)]
    names, folds = wanted.rivals or list(dict.fromkeys(usual)), wanted.folds or 2
    whole = found.counts.assortments.n_offers >= 2 * folds
    with progress("comparing") as tell:
        return compare(
            found.counts, names, holdout="assortments" if whole else "choices", folds=folds, seed=wanted.seed,
            watch=lambda name, done, total: tell(f"comparing, {name}", done, total),
        )  # fmt: skip


def _items(model: Any, wanted: Wanted, reading: ReadingOptions) -> Any:
    """The margins, and what ``best_offer`` is asked."""
    from rankstream.decide.problem import make_problem

    assert wanted.margins is not None
    names, levels = all_names(model), model.price_levels
    nothing = reading.no_choice if model.no_choice is None else str(model.no_choice)
    nothing = nothing if nothing in names else None
    items = read_items(wanted.margins, names, nothing, None if levels is None else levels.items)
    said = constraints(items, names, wanted.at_most, None, None, None, None, None, None)
    said |= {"no_choice": None if nothing is None else names[nothing], "costs": items.unit_costs}
    make_problem(model, items.margins, **said)  # what is wrong with it is said before the work begins
    return items.margins, said


def offers(
    sheet: Sheet,
    model: "Model",
    items: Any,
    many: "Bootstrap | None",
    wanted: Wanted,
    content: dict[str, Any],
) -> Section:
    """The best offer and its worth, where it is known what items earn."""
    from rankstream.service.page.findings import offer_section

    content["decision"] = None
    if items is None:
        words = "It is not known what items earn: give a table of items with --margins to see the best offer."
        return Section("offer", "The best offer, and its worth", (words,))
    from rankstream.decide.choosing import best_offer

    margins, said = items
    with told() as watch:
        best: Decision = best_offer(
            model, margins, top=3, budget=wanted.budget, counts=many, seed=wanted.seed, watch=watch, **said
        )
    made = offer_section(sheet, best)
    content["decision"] = best.to_content()
    return made
