"""The command ``rankstream plot``: a picture of a saved model, or of how well it fits a file of choices."""

from pathlib import Path
from typing import Any, Literal, get_args

from rich.console import Console

from rankstream import plots
from rankstream.counts import ChoiceCounts
from rankstream.model_commands import Model, as_items, print_plain
from rankstream.model_files import load_model
from rankstream.pictures import check_picture, save_picture
from rankstream.readers import read

Kind = Literal["segments", "substitution", "fit"]


def run(
    model_path: Path, out: Path, kind: str, data: Path | None, top: int, places: int, offer: str | None, **reading: Any
) -> None:
    """Load, draw, save; what is wrong is told before any work is done."""
    if kind not in get_args(Kind):
        raise ValueError(f"There is no kind {kind!r} of picture: choose one of {', '.join(map(repr, get_args(Kind)))}.")
    if (kind == "fit") != (data is not None):
        raise ValueError("A picture of the fit, and no other, needs the choices: give --kind fit and --data together.")
    if offer is not None and kind != "substitution":
        raise ValueError(f"A picture of kind {kind!r} is about no single offer: leave --offer out.")
    check_picture(out)
    model = load_model(model_path)
    if data is not None:
        found = read(data, **reading)
        if found.problems.total:
            console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
            console.print(found.problems.summary())
        draw_fit(model, found.counts, out)
    elif kind == "segments":
        draw_segments(model, out, top, places)
    else:
        draw_substitution(model, offer, out)
    print_plain(f"Saved {out}.")


def draw_fit(model: Model, counts: ChoiceCounts, out: Path) -> None:
    """Predicted against observed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 6.0), layout="constrained")
    plots.predicted_against_observed(model, counts, figure.subplots())
    save_picture(figure, out)


def draw_segments(model: Model, out: Path, top: int = 10, places: int = 2) -> None:
    """The customer types, with room for their names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = plots.segments(model, figure.subplots(), top, places)
    figure.set_figheight(1.4 + 0.32 * len(axes.patches))
    save_picture(figure, out)


def draw_substitution(model: Model, offer: str | None, out: Path) -> None:
    """The substitution matrix, as large as its items need."""
    from matplotlib.figure import Figure

    items = None if offer is None else as_items(offer, {str(item): item for item in model.items})
    moves = model.substitution(items)
    side = 3.5 + max(0.22, 0.5 - 0.02 * max(0, len(moves.items) - 8)) * len(moves.items)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    plots.substitution(moves, figure.subplots())
    save_picture(figure, out)
