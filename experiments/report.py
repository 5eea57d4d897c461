"""The report: every table and figure, a verdict on every claim, and the answers to the questions beyond."""

import io
from collections.abc import Iterator
from pathlib import Path

from experiments import figures
from experiments.claims import CLAIMS, Found
from experiments.questions import QUESTIONS
from experiments.settings import StudyPart
from experiments.store import Store
from experiments.tables import Results, grid, latex, markdown, summary, with_error
from rankstream._core.files import write_whole
from rankstream._core.version import VERSION

READINGS = """\
- **Subsets**: distinct, uniform over all non-empty subsets of at most half the items (`sizes = "sizes"` draws the size
  first); test offers are drawn independently of the training offers, as in the paper.
- **Ties**: rankings that give the same vertex are completed at random, seeded by the instance (`ties`).
- **Stopping**: at MAE(x̄, p̄) <= 0.001 with p̄ the weighted mean of the data, or after 10,000 rounds; such runs count as
  10,000.
- **Smoothing and steps**: the optimal smoothing and the textbook step for T = 10,000 rounds.
- **Rankings** are distinct orders of what stands above the no-choice option.
- Figures are means over instances, with standard errors where there are several; instance i is the market of seed i in
  every cell."""


def write_report(store: Store, parts: list[StudyPart], instances: int) -> Path:
    """Write summary.csv, the figures as PNG and PDF, report.md, and its tables as LaTeX into the store's folder."""
    found = {part.name: Results(store.rows(part.runs(instances))) for part in parts}
    every = {run for part in parts for run in part.runs(instances) if run.kind in ("static", "dynamic")}
    write_whole(store.folder / "summary.csv", summary(Results(store.rows(every)), VERSION))
    for part in parts:
        _draw(store.folder, part, found[part.name])
    path = store.folder / "report.md"
    text = "\n\n".join(_sections(parts, found, instances)) + "\n"
    write_whole(path, text)
    tables = [latex(block) for block in text.split("\n\n") if block.startswith("| ")]
    write_whole(store.folder / "tables.tex", "\n\n".join(tables) + "\n")
    return path


def _draw(folder: Path, part: StudyPart, results: Results) -> None:
    figure = figures.draw(part, results) if len(results) else None
    if figure is None:
        return
    for kind, options in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=150, metadata=options)
        write_whole(folder / f"{part.name}.{kind}", content.getvalue())


def _sections(parts: list[StudyPart], found: Found, instances: int) -> Iterator[str]:
    yield "# The paper's computational study, reproduced"
    names = " ".join(part.name for part in parts)
    begins = f" from seed {parts[0].seed} on" if parts and parts[0].seed else ""
    yield (
        f"Made by `rankstream reproduce` {VERSION} with {instances} instances a cell{begins} (some parts use "
        f"fewer, as their settings say): {names}. Numbers by cell: `summary.csv`."
    )
    yield f"How the paper was read where it leaves a choice:\n\n{READINGS}"
    yield "## Claim by claim"
    yield (
        '"Roughly the same" is read as means within 15 % of each other, "strongly correlated" as a rank correlation of '
        'at least 0.8, "better" as a mean paired difference of more than two standard errors.'
    )
    yield _claims(found)
    yield "## The paper's figures"
    for part in parts:
        if part.number and len(found[part.name]):
            yield from _figure(part, found[part.name])
    yield "## Beyond the paper's own questions"
    for title, needs, answer in QUESTIONS:
        if all(name in found and len(found[name]) for name in needs):
            yield f"### {title}\n\n{answer(found)}"
    if len(found.get("solvers", Results([]))):
        yield f"### What it would take with an integer program\n\n{solver_ratio(found)}"
    others = [part for part in parts if not part.number and part.name not in SPECIAL and len(found[part.name])]
    for part in others:
        yield f"### {part.title}\n\n{_tables(found[part.name])}"


SPECIAL = ("why", "ties", "resolving", "solvers")


def _claims(found: Found) -> str:
    lines = []
    for number, claim in enumerate(CLAIMS, start=1):
        verdict = claim.verdict(found)
        if verdict is None:
            lines.append([str(number), claim.where, claim.says, "not run", f"Needs {', '.join(claim.needs)}."])
        else:
            lines.append([str(number), claim.where, claim.says, f"**{verdict.holds}**", verdict.measured])
    return markdown(["", "where", "the paper says (in our words)", "verdict", "we measured"], lines)


def _figure(part: StudyPart, results: Results) -> Iterator[str]:
    yield f"### Figure {part.number}: {part.title}"
    yield f"![{part.title}]({part.name}.png)"
    yield _tables(results)


def _tables(results: Results) -> str:
    if results.setting("kind") == "profile":
        columns = (("Training MAE, x̄ against p̄", with_error("mae")), ("Test MAE", with_error("test_mae")))
        return "\n\n".join(f"{title}:\n\n{grid(results, ('mark',), 'per_round', show)}" for title, show in columns)
    down: tuple[str, ...] = ("norm", "method")
    across, label = ("offers", "m =") if len(results.values("offers")) > 1 else ("segments", "K =")
    if results.setting("kind") == "dynamic":
        down, across, label = ("method",), "per_round", "a round:"
    wanted = [("Test MAE", with_error("test_mae")), ("Rankings", with_error("rankings", 0))]
    wanted.append(("Rounds", with_error("rounds", 0)))
    if results.setting("timed"):
        wanted = [("Seconds of a fit", with_error("seconds")), ("Oracle, ms per call", with_error("oracle_ms", 5))]
    tables = [f"{title}:\n\n{grid(results, down, across, shown, label)}" for title, shown in wanted]
    limit = f"Runs that met the limit of rounds: {100 * (1 - results.mean('converged')):.1f} %."
    return "\n\n".join([*tables, limit])


def solver_ratio(found: Found) -> str:
    """How much longer the same rounds take with an integer program."""
    runs = found["solvers"]
    ours, theirs = (runs.where(way=way) for way in ("ours", "HiGHS"))
    calls = theirs.column("calls").sum()
    per_call = [1e3 * cells.column("oracle_seconds").sum() / cells.column("calls").sum() for cells in (ours, theirs)]
    whole = [cells.column("seconds").sum() / cells.column("calls").sum() for cells in (ours, theirs)]
    ends = {row.run: row.results["rounds"] for name in found if name not in SPECIAL for row in found[name].rows}
    study = sum(ends.values())
    return (
        f"The same loop, one core, on {len(ours)} instances (static, l2, m = 20, {calls:.0f} rounds each way in all): "
        f"an oracle call takes {1e3 * per_call[0]:.1f} microseconds with ours and {per_call[1]:.1f} ms with the "
        f"paper's integer program in HiGHS, a factor of {per_call[1] / per_call[0]:,.0f}; for a whole round it is "
        f"{whole[1] / whole[0]:,.0f}. The {study:,.0f} rounds of the figures above would take "
        f"{study * whole[1] / 3600 / 2:,.0f} hours of two cores that way."
    )
