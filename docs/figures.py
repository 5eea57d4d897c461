"""Draws the figures of the documentation: ``make figures``."""

import os
import shutil
from doctest import DocTestParser
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import rankstream as rs
from rankstream import learners, simulate
from rankstream.certificate import guaranteed_gap
from rankstream.learners import FollowTheLeader, NaiveFrankWolfe
from rankstream.plots import BLUE, ORANGE

HERE = Path(__file__).parent
IMAGES = HERE / "images"
PAGES = ("gallery.md", "tutorials/first-model.md", "tutorials/kiosk.md", "tutorials/prices.md", "how-to/decide.md")
BALLOTS = ("tutorials/election.md",) if "RANKSTREAM_DATA" in os.environ else ()
SHELF = ("croissant", "muffin", "bagel", "pretzel", "nothing")
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


def stock_out() -> None:
    """The answer that the README and the home page begin with: where the buyers of a croissant go."""
    counts = rs.read_counts(HERE.parent / "examples" / "bakery.csv", no_choice="nothing")
    moves = rs.Bootstrap(counts, replicates=50, seed=0).substitution(SHELF)
    gone, low, high = SHELF.index("croissant"), moves.low, moves.high
    assert low is not None
    assert high is not None
    found = sorted(
        (100 * share, 100 * low[gone, k], 100 * high[gone, k], SHELF[k])
        for k, share in enumerate(moves.shares[gone])
        if k != gone
    )
    figure = Figure(figsize=(6, 2.9), layout="constrained")
    axes = figure.subplots()
    shares = [row[0] for row in found]
    sides = [[row[0] - row[1] for row in found], [row[2] - row[0] for row in found]]
    axes.barh(range(len(found)), shares, color=[ORANGE if row[3] == "nothing" else BLUE for row in found])
    axes.errorbar(shares, range(len(found)), xerr=sides, fmt="none", ecolor="black", capsize=3)
    for place, (share, _, end, _) in enumerate(found):
        axes.text(end + 1, place, f"{share:.0f}", va="center", fontsize=12)
    names = ["leave without buying" if row[3] == "nothing" else f"take a {row[3]}" for row in found]
    axes.set_yticks(range(len(found)), names, fontsize=12)
    axes.set_xlim(0, max(row[2] for row in found) + 6)
    figure.suptitle(
        "No croissants today, only muffins, bagels and pretzels:\nwhat do 100 croissant buyers do?", fontsize=13
    )
    axes.set_xlabel("customers, with 95 % intervals")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "stock-out.png", dpi=130)


def of_page(name: str) -> None:
    """Run the examples of a page and keep the pictures that they put into their ``folder``."""
    names: dict[str, Any] = {}
    for example in DocTestParser().get_examples((HERE / name).read_text(encoding="utf-8")):
        exec(compile(example.source, name, "exec"), names)
    for picture in sorted(names["folder"].glob("*.png")):
        shutil.copy(picture, IMAGES)


if __name__ == "__main__":
    data_errors()
    stock_out()
    for page in PAGES + BALLOTS:
        of_page(page)
