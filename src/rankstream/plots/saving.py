"""Picture files: names that matplotlib can write, and files that are there whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from rankstream._core.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")
"""What a picture's name may end in."""


def check_picture(path: Path) -> None:
    """Refuse what would fail only after the work is done."""
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to save {path.name} in: make it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file for the picture.")
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path.name} does not name a picture: let it end in .png, .svg, .pdf or .jpg.")


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure as a whole file; the format follows from the ending."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".").lower(), dpi=150)
