"""Intervals at the shell: a model refitted to choices simulated from it, on the choices that it was fitted to."""

from pathlib import Path
from typing import TYPE_CHECKING

from rankstream._core.terminal import print_note, progress
from rankstream.cli.asking import method_of

if TYPE_CHECKING:
    from rankstream.cli.asking import Model
    from rankstream.cli.options import ReadingOptions
    from rankstream.data.counts import ChoiceCounts
    from rankstream.estimation.intervals import Bootstrap


def refits_of(
    model: "Model", data: Path | None, reading: "ReadingOptions", replicates: int, seed: int
) -> "Bootstrap | None":
    """A bootstrap of the model where there are choices for it."""
    return None if data is None else refitted(model, data, reading, replicates, seed)


def refitted(model: "Model", data: Path, reading: "ReadingOptions", replicates: int, seed: int) -> "Bootstrap":
    """A bootstrap of the model; the choices are read as they were for the fit, unless options say otherwise.

    Progress goes to standard error, and only on a terminal. Choices that are not those of the fit are reported there.
    """
    counts = reading.as_fitted(model).read(data).counts
    check_choices(model, counts, data)
    return refitted_to(model, counts, replicates, seed)


def check_choices(model: "Model", counts: "ChoiceCounts", data: Path) -> None:
    """Refuse choices that a model cannot have been fitted to; those of another fit are reported."""
    known = set(counts.assortments.items)
    missing = next((item for item in model.items if item not in known), None)
    if missing is not None:
        raise ValueError(
            f"{data} never offers {missing!r}, which the model knows: give the choices that the model was fitted to."
        )
    noted = model.about.get("data")
    digest = noted.get("digest") if isinstance(noted, dict) else None
    if digest is not None and digest != counts.digest():
        print_note(f"{data} is not what the model was fitted to: its intervals are those of a fit to as many choices.")


def refitted_to(model: "Model", counts: "ChoiceCounts", replicates: int, seed: int) -> "Bootstrap":
    """A bootstrap of the model on choices that were read already."""
    from rankstream.estimation.intervals import Bootstrap

    with progress("refitting") as tell:
        return Bootstrap(
            counts, method_of(model), replicates, seed, model=model,
            watch=lambda done, total: tell(f"refitting, {done} of {total}", done, total),
        )  # fmt: skip
