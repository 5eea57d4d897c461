"""``report``: one self-contained page on a model and its choices, with the decision first and the evidence below."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankstream._core.files import write_whole
from rankstream._core.terminal import as_time, plural
from rankstream._core.version import VERSION
from rankstream._core.watch import Deadline, Watch, process_seconds
from rankstream.data import ChoiceCounts, DriftReport, drift_report
from rankstream.data.readers.reading import Reading
from rankstream.decide.best import PART_FOR_SEARCH, best_offer
from rankstream.decide.decision import Units
from rankstream.decide.intervals import MIN_REPLICATES, PART_FOR_REFITS, REPLICATES
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.files import method_of
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.reports import findings, sections
from rankstream.reports.answers import Answers
from rankstream.reports.blocks import Section, TableBlock, render
from rankstream.reports.origin import MIN_DATE, period_of, proven

MAX_SUBSTITUTED_ITEMS = 30  # items whose substitutes are asked for: the most chosen ones
MAX_OFFERS = 10  # in the table of offers
NO_TIMES = "These choices have no times, so changes cannot be found. Read a file with times to see them."
NO_MARGINS = "Add margins to see what to offer and what it would earn."


@dataclass(frozen=True)
class Report:
    """A page, its sections, and the same numbers as JSON can write them."""

    title: str
    period: str
    source: str
    sections: tuple[Section, ...]
    content: dict[str, Any] = field(repr=False)

    @property
    def html(self) -> str:
        """The page: one file without scripts, fonts or pictures from elsewhere."""
        return render("report.html", pages=[self], title=self.title, index=None)

    def save(self, path: Path | str) -> Path:
        """Write the page; a failure leaves what was there before."""
        write_whole(Path(path), self.html)
        return Path(path)


def report(
    model: Any,
    counts: ChoiceCounts | Reading,
    *,
    margins: Any = None,
    out: Path | str | None = None,
    title: str = "What customers choose",
    source: str = "",
    currency: str = "",
    intervals: Bootstrap | str | None = None,
    top: int = 10,
    budget: float = 20.0,
    seed: int = 0,
    watch: Watch | None = None,
    today: str = "",
    **constraints: Any,
) -> Report:
    """Write a report on a model: what to do, what changed, who the customers are, and how sure all that is.

    The first screen has findings in the language of a shop, each with its uncertainty, and what to do with the gain
    against today's offer; the details follow.

    Parameters
    ----------
    model : model
        Any model of the package.
    counts : ChoiceCounts or Reading
        The choices that it was fitted to. A ``Reading`` with time slices also shows what changed.
    margins : dict, Series or number, optional
        What a sale of each item earns; or give ``costs`` for a model with price levels. Without either there is no
        advice.
    out : path, optional
        The HTML file to write.
    title, source : str
        The heading, and a line below it.
    currency : str
        What margins are in, such as "EUR".
    intervals : Bootstrap or str, optional
        Refits for intervals, or a sentence that says why there are none. Without either, intervals are those that the
        model remembers from its fit.
    top : int
        How many customer types.
    budget : float
        CPU seconds for the best offer and its intervals; five refits for these take place in any case.
    seed : int
        Seed for searches and refits.
    watch : callable, optional
        May end the search for the best offer, as in ``best_offer``.
    today : str
        Where the offer ``present`` comes from, if you did not choose it: said in brackets.
    **constraints
        What ``best_offer`` takes: ``costs``, ``at_most``, ``present`` and so on.

    Examples
    --------
    >>> import rankstream as rs
    >>> counts = rs.read_counts("examples/cafe.csv")
    >>> page = report(rs.estimate(counts).model, counts, margins={"tea": 2, "cake": 1.5, "pie": 1})
    >>> [section.title for section in page.sections][:3]
    ['What to do', 'What you should know', 'What changed over time']
    """
    if len(model.items) < 2:
        raise ValueError("The model has only one item, so there is nothing to report: fit it to offers with several.")
    reading = counts if isinstance(counts, Reading) else None
    choices = counts.counts if isinstance(counts, Reading) else counts
    answers = Answers.of(model, intervals, MAX_SUBSTITUTED_ITEMS)
    curves = answers.curves()
    decision = None
    if margins is not None or constraints.get("costs") is not None:
        data: Any = choices if isinstance(intervals, str) else intervals or _refits(model, choices, budget, seed)
        decision = best_offer(
            model, margins, top=3, budget=PART_FOR_SEARCH * budget, counts=data,
            interval=None if isinstance(intervals, str) else 0.95, seed=seed, watch=watch, **constraints,
        )  # fmt: skip
    drift, cut = _drift(reading)
    units, warnings = Units(currency=currency), fit_warnings(model.about)
    brackets = [f"In brackets: {interval_words(model.about)}."] if decision is not None and decision.interval else []
    slices, spans = ((), ()) if reading is None else (reading.slices or (), reading.slice_times or ())
    today = today or ("the most frequent" if constraints.get("present") is None else "")
    made = [
        Section("advice", "What to do", (*warnings, NO_MARGINS))
        if decision is None
        else findings.advice_section(decision, units, (*warnings, *brackets), today),
        findings.findings_section(model, choices, answers.moves, curves, interval_words(model.about)),
        Section("drift", "What changed over time", (cut,))
        if drift is None
        else findings.drift_section(drift, slices, spans, nothing=model.no_choice, cut=cut),
        sections.substitution_section(answers.moves, answers.shares or None, model),
        sections.types_section(model, answers.types, answers.rankings(top), top),
    ]
    if curves:
        made.append(sections.demand_section(curves))
    if decision is not None:
        made.append(findings.offer_section(decision, units))
    made.append(sections.fit_section(model, choices, proven(model, answers.origin)))
    made += [] if reading is None else [findings.read_section(reading)]
    made.append(findings.offers_section(choices, MAX_OFFERS))
    content = {
        "warnings": warnings,
        "drift": None if drift is None else drift.to_json(),
        "decision": None if decision is None else decision.to_json(),
    }
    days = period_of(None if reading is None else reading.times)
    period = " · ".join(filter(None, (days, plural(choices.observations, "choice"))))
    line = f"Made by rankstream {VERSION}{f' from {source}' if source else ''}, seed {seed}."
    found = Report(title, period, line, tuple(made), content)
    if out is not None:
        found.save(out)
    return found


def combine(reports: Mapping[str, Report], title: str, units: Units, errors: Mapping[str, str]) -> str:
    """Return one page for several markets: an index with each one's best change or error, and a part for each."""
    rows = []
    for name, one in reports.items():
        around = (one.content["decision"] or {}).get("context") or {}
        gain = "" if around.get("gain") is None else units.change(around["gain"]) + units.ends(around["gain_interval"])
        rows.append((name, one.period.rpartition(" · ")[2], gain))
    rows += [(name, "no report", reason) for name, reason in errors.items()]
    index = TableBlock("Markets", ("market", "visits", "best gain per 100 customers"), rows)
    return render("report.html", pages=list(reports.values()), title=title, index=index)


def _refits(model: Any, choices: ChoiceCounts, budget: float, seed: int) -> Bootstrap:
    """Refit the model as often as an interval needs, whatever the time that takes, and more often if there is time."""
    clock = Deadline((PART_FOR_REFITS - PART_FOR_SEARCH) * budget, clock=process_seconds)
    return Bootstrap(
        choices, method_of(model), REPLICATES, seed, model=model,
        watch=lambda text, done: round(done * REPLICATES) >= MIN_REPLICATES and clock(text),
    )  # fmt: skip


def _drift(reading: Reading | None) -> tuple[DriftReport | None, str]:
    if reading is None or not reading.slices or len(reading.slices) < 2 or not reading.slice_times:
        return None, NO_TIMES
    half = len(reading.slices) // 2
    before, after = (sum(part[1:], part[0]) for part in (reading.slices[:half], reading.slices[half:]))
    try:
        start = reading.slice_times[half][0]
        cut = f" (cut at {as_time(start)}; 'rankstream drift --at' compares other periods)"
        return drift_report(before, after), cut if start >= MIN_DATE else ""
    except ValueError as error:
        return None, f"Changes could not be tested: {error}"
