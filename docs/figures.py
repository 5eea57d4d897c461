"""Draws the figures of the documentation: ``make figures``."""

import os
import shutil
from doctest import DocTestParser
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rankstream import learners, simulate
from rankstream.certificate import guaranteed_gap
from rankstream.learners import FollowTheLeader, NaiveFrankWolfe
from rankstream.plots import BLUE, ORANGE

HERE = Path(__file__).parent
IMAGES = HERE / "images"
PAGES = ("tour.md", "example.md", "prices.md", *(["election.md"] if "RANKSTREAM_DATA" in os.environ else []))
ROUNDS = np.unique(np.geomspace(10, 10**6, 40).astype(int))


def data_errors() -> None:
    """The data-error terms of the two Frank-Wolfe variants, for data that converge at three speeds."""
    offers = simulate.market(seed=0).assortments
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, decay in zip(panels, (0.25, 0.5, 1.0), strict=True):
        for player, colour, style, label in (
            (FollowTheLeader(), BLUE, "-", "follow the leader (FW_dyn)"),
            (NaiveFrankWolfe(), ORANGE, "--", "naive Frank-Wolfe"),
        ):
            terms = []
            for rounds in ROUNDS.tolist():
                distance, _ = learners.match("l2", player, offers, rounds)
                errors = np.arange(1, rounds + 1) ** -decay
                with_data = guaranteed_gap(player, distance, offers, rounds, errors)
                terms.append(with_data - guaranteed_gap(player, distance, offers, rounds))
            axes.plot(ROUNDS, terms, color=colour, linestyle=style, label=label)
        axes.set(xscale="log", yscale="log", xlabel="rounds T", title=f"|p_t - p| falls as t^-{decay:g}")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("bound on the data error")
    panels[0].legend(frameon=False, loc="lower left")
    figure.savefig(IMAGES / "data-error.png", dpi=150)


def of_page(name: str) -> None:
    """Run the examples of a page and keep the pictures that they put into their ``folder``."""
    names: dict[str, Any] = {}
    for example in DocTestParser().get_examples((HERE / name).read_text(encoding="utf-8")):
        exec(compile(example.source, name, "exec"), names)
    for picture in sorted(names["folder"].glob("*.png")):
        shutil.copy(picture, IMAGES)


if __name__ == "__main__":
    data_errors()
    for page in PAGES:
        of_page(page)
