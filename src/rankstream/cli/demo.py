"""The command ``rankstream demo``: estimate a model of a simulated market while choices arrive."""

from math import isnan
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import Console

from rankstream._core.files import write_whole
from rankstream._core.terminal import print_json, progress
from rankstream._core.watch import interrupts
from rankstream.cli.options import AsJson
from rankstream.cli.pictures import new_figure
from rankstream.reports.origin import certificate_words

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.simulate import Market
    from rankstream.estimation.estimate import Estimate
    from rankstream.models.rankings import RankingModel

    Fit: TypeAlias = Estimate[RankingModel]

NOTHING = "nothing"
ITEMS = ("tea", "coffee", "juice", "cake", "pie", "scone", "bagel", "toast", "soup", "salad")
MARGINS = (1.2, 1.5, 1.8, 2.0, 2.2, 1.1, 1.0, 0.8, 2.6, 2.4)
"""The margin of each item, for the best offer."""
NEVER_OFFERED = ("tea", "coffee", "cake", "pie", "scone", "soup", "salad", NOTHING)
COLUMNS = (
    "round {round:>5}   choices {observations:>9,.0f}   mean absolute error {mae:.5f}   gap {shown}   "
    "rankings {rankings:.0f}"
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model, a chart, the choices and a table of items.")] = (
        Path("rankstream-demo")
    ),
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the market and its choices.")] = 0,
    per_round: Annotated[int, typer.Option(min=1, max=10_000_000, help="New choices per round.")] = 200,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Stop when the mean absolute error is this small.")] = 1e-3,
    max_rounds: Annotated[int, typer.Option(min=1, help="Maximum number of rounds.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Watch a model learn from simulated choices.

    Example: rankstream demo --seed 1
    """
    from rankstream.data import simulate

    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: give a folder for the results with --out.")
    out.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=as_json, highlight=False, soft_wrap=True, markup=False, emoji=False)
    market = simulate.market(seed, items=ITEMS, unseen=True)
    with interrupts() as signals:
        console.print(
            f"A market of {len(ITEMS)} items and '{NOTHING}', {market.assortments.n_offers} different "
            f"offers: 2,000 choices to start with, then {per_round:,} per round."
        )
        estimate, counts = watch(console, market, per_round, tolerance, max_rounds, signals)
    content = describe(market, estimate)
    print_summary(console, content, estimate.model)
    files = save_all(market, estimate, counts, out)
    words = ["report", files["model"], "--data", files["data"], "--margins", files["items"], "-o", out / "report.html"]
    console.print(f"\nSaved {files['model']} and {files['chart']}.")
    console.print(f"To write a report about it: rankstream {' '.join(quote(str(word)) for word in words)}")
    if as_json:
        print_json(content | files)


def watch(
    console: Console, market: "Market", per_round: int, tolerance: float, max_rounds: int, signals: list[int]
) -> "tuple[Fit, ChoiceCounts]":
    """Run until the tolerance is met or Ctrl-C; return the estimate and its choices."""
    from rankstream.solver.loop import make_solver
    from rankstream.solver.runs import Run

    solver = make_solver(market.assortments, "l2", "mirror-descent", None, "random", max_rounds, market.seed)
    run = Run(solver, tolerance, certify_every=10)
    gap = "-"
    with progress("waiting for the first choices") as tell:
        for _, counts in zip(range(max_rounds), market.stream(per_round), strict=False):
            done = run.advance(counts)
            row = run.last
            gap = gap if isnan(row["gap"]) else f"{row['gap']:.4f}"
            tell(COLUMNS.format(round=run.state.round, shown=gap, **row), 0.0)
            if done or signals:
                break
    if signals:
        console.print("Interrupted: continuing with the model so far.")
    return run.result(), counts


def save_all(market: "Market", estimate: "Fit", counts: "ChoiceCounts", out: Path) -> dict[str, str]:
    """Write the model, a chart, the choices and the margins; return the names of the files."""
    from rankstream import plots
    from rankstream._core.files import save_picture

    names = {"model": "model.json", "chart": "demo.png", "data": "choices.csv", "items": "items.csv"}
    files = {what: out / name for what, name in names.items()}
    proof, number = estimate.certificate, float(counts.observations)
    certificate = {"distance": proof.upper, "proven_least_distance": proof.lower, "gap": proof.gap, "norm": "l2"}
    about = {"certificate": certificate, "choices": number, "data": {"file": str(files["data"])}}
    estimate.model.note(**about).save(files["model"])
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2)
    plots.convergence(estimate, left)
    plots.predicted_against_true(
        estimate.model.probabilities(market.test), market.truth.probabilities(market.test), right
    )
    save_picture(figure, files["chart"])
    pairs = [(offer, item) for offer in counts.assortments.offers for item in offer]
    tallies = zip(pairs, counts.tallies.tolist(), strict=True)
    lines = [f"{';'.join(map(str, offer))},{item},{tally:.0f}" for (offer, item), tally in tallies if tally]
    write_whole(files["data"], "\n".join(["offered,chosen,count", *lines, ""]))
    margins = [f"{item},{margin}" for item, margin in zip(ITEMS, MARGINS, strict=True)]
    write_whole(files["items"], "\n".join(["item,margin", *margins, ""]))
    return {what: str(path) for what, path in files.items()}


def describe(market: "Market", estimate: "Fit") -> dict[str, Any]:
    """Return the result for JSON."""
    from rankstream.data.assortments import Assortments

    offer, proof = Assortments([NEVER_OFFERED]), estimate.certificate
    models: dict[str, Any] = {"predicted": estimate.model, "true": market.truth}
    return {
        "converged": bool(estimate.converged),
        "rounds": estimate.rounds,
        "choices": int(estimate.history.observations[-1]),
        "mean_absolute_error": float(estimate.history.mae[-1]),
        "distance": proof.upper,
        "proven_least_distance": proof.lower,
        "gap": proof.gap,
        "rankings": len(estimate.model.weights),
        "unseen_offer": {
            name: dict(zip(NEVER_OFFERED, model.probabilities(offer).tolist(), strict=True))
            for name, model in models.items()
        },
    }


def print_summary(console: Console, content: dict[str, Any], model: "RankingModel") -> None:
    """Print the result as text."""
    proof = certificate_words(content["distance"], content["proven_least_distance"], content["gap"], "l2")
    console.print(
        f"\n{'Converged' if content['converged'] else 'Stopped'} after {content['rounds']} rounds and "
        f"{content['choices']:,} choices: {content['rankings']} rankings, mean absolute error "
        f"{content['mean_absolute_error']:.5f}.\n{proof}."
    )
    console.print("\nThe ten most frequent rankings:")
    for line in model.describe(10):
        console.print(f"  {line}")
    console.print(f"\nAn offer that is not in the data, {', '.join(NEVER_OFFERED)}:")
    console.print(f"  {'':<10}{'predicted':>10}{'true':>8}")
    shares = content["unseen_offer"]
    for item in NEVER_OFFERED:
        console.print(f"  {item:<10}{100 * shares['predicted'][item]:>8.1f} %{100 * shares['true'][item]:>6.1f} %")
