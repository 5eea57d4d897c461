"""The command ``rankstream fit``: from a file of choices to a model file, within a time budget."""

import json
from pathlib import Path
from typing import Any, cast, get_args

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from rankstream.budget import fit_within
from rankstream.entropy_model import EntropyModel
from rankstream.estimation import Method
from rankstream.model_commands import print_plain
from rankstream.readers import read
from rankstream.runs import Estimate


def run(
    data: Path, out: Path, method: str, budget: float, tolerance: float, seed: int, as_json: bool, **reading: Any
) -> Estimate[Any]:
    """Read, fit, save, and say what was found; progress goes to standard error, and only on a terminal."""
    if method not in get_args(Method):
        raise ValueError(f"There is no method {method!r}: choose one of {', '.join(map(repr, get_args(Method)))}.")
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent} to save {out.name} in: make it first.")
    if out.is_dir():
        raise ValueError(f"{out} is a folder: name a file for the model with --out.")
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    found = read(data, **reading)
    if found.problems.total:
        console.print(found.problems.summary())
    counts = found.counts
    with Progress(
        TextColumn("{task.description}"), BarColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("starting", total=1.0)
        fit = fit_within(
            counts, budget, cast(Method, method), tolerance, seed,
            lambda text, part: bar.update(task, description=text, completed=part),
        )  # fmt: skip
    fit.model.save(out)
    content = describe(fit, counts.observations, counts.assortments.n_offers, out)
    print_plain(json.dumps(content, indent=2) if as_json else as_text(content))
    return fit


def describe(fit: Estimate[Any], observations: float, offers: int, out: Path) -> dict[str, Any]:
    """What was found, as what JSON can hold."""
    dense = isinstance(fit.model, EntropyModel)
    return {
        "model": str(out),
        "kind": "max-entropy" if dense else "rankings",
        "rankings": None if dense else len(fit.model.weights),
        "choices": observations,
        "offers": offers,
        "rounds": fit.rounds,
        "converged": bool(fit.converged),
        "mean_absolute_error": float(fit.history.mae[-1]),
        "distance": float(fit.certificate.upper),
        "proven_least_distance": max(0.0, float(fit.certificate.lower)),
        "gap": float(fit.certificate.gap),
        "oracle_exact": bool(fit.certificate.exact),
    }


def as_text(content: dict[str, Any]) -> str:
    """The same in sentences."""
    what = "all rankings, by maximum entropy" if content["kind"] == "max-entropy" else f"{content['rankings']} rankings"
    ended = "" if content["converged"] else " (cut short before it was good enough)"
    return (
        f"{content['choices']:,} choices from {content['offers']:,} offers; a model of {what}{ended}.\n"
        f"Mean absolute error on these offers {content['mean_absolute_error']:.4f}; l2 distance "
        f"{content['distance']:.4f}, and no ranking model is nearer than {content['proven_least_distance']:.4f}.\n"
        f"Saved {content['model']}."
    )
