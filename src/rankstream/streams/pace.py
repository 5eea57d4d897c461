"""The pace of a stream: how much work a market that keeps meeting new things gets, by its size and choices alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream import oracles
from rankstream._core.threads import one_blas_thread
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import Explained, QuickOracle
from rankstream.solver.runs import Run
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.files.packing import check_whole
from rankstream.streams.runs.growth import drop_offers, extend_rankings, grow, offers_to_keep, tie_rule

MAX_COORDINATES_REFIT = 250  # up to which max-entropy is fitted whenever an item joins; benchmarks/streams.py times all
SMALL_COORDINATES, SMALL_ITEMS = 1_000, 16  # up to which programs are built whenever an offer joins
MAX_PROGRAM_COORDINATES = 10_000  # beyond which they are built no more once offers join
PROGRAM_BYTES = 16e6  # of a table, which is made in 0.1 s: ten markets grow at once (benchmarks/learner_memory.py)
COORDINATES_PER_CHOICE = 200  # whose work a choice pays for
MAX_COORDINATES = 1_000_000  # beyond which offers leave
KEPT_SHARE = 0.75  # of the coordinates then


@dataclass
class StreamPace:
    """When a stream builds programs, how many choices it learns from at a time, and what has left it.

    An oracle's programs are built when offers join, up to 1,000 coordinates of 16 items always, up to 10,000 once as
    many choices have come since they were last built as there are coordinates. In between, and beyond, a
    ``QuickOracle`` answers, which is as quickly made as asked; choices wait until there is one for every 200
    coordinates, and 5 rounds are played then. Beyond 1,000,000 coordinates offers leave, those of fewest choices
    first, the oldest of them first.

    >>> pace, offers = StreamPace(), Assortments([range(k, k + 40) for k in range(50)])
    >>> pace.affords(offers)
    False
    >>> pace.choices += 2_000
    >>> pace.affords(offers)
    True
    """

    copies: int = 1
    choices: int = 0
    built: int = 0
    left: int = 0

    def affords(self, offers: Assortments) -> bool:
        """Whether programs for these offers may be built now."""
        return is_small(offers) or self.choices - self.built >= offers.n_coordinates <= MAX_PROGRAM_COORDINATES

    def first_oracle(self, offers: Assortments, seed: int, choices: int) -> Explained:
        """The first oracle of a market: a quick one if most of its choices came from new offers, as more will come."""
        if not is_small(offers) and 2 * offers.n_offers > choices:
            return QuickOracle(offers, seed=seed)
        return oracles.auto(offers, seed=seed, memory=PROGRAM_BYTES)

    def keep_up(self, runs: Sequence[Run], offers: Assortments) -> None:
        """Let new offers join the runs, and build programs if choices have paid for them."""
        grown = runs[0].solver.assortments != offers
        fully = self.affords(offers)
        if not grown and not (fully and is_quick(runs[0])):
            return
        for run in runs:
            if not fully:
                with one_blas_thread():
                    run.solver, run.state = grow(run.solver, run.state, offers, _quicker(run, offers))
                continue
            program = oracles.auto(offers, *tie_rule(run.solver.oracle), memory=PROGRAM_BYTES)
            if grown:
                run.solver, run.state = grow(run.solver, run.state, offers, program)
            else:
                run.solver = replace(run.solver, oracle=program)
        self.built = self.choices if fully else self.built

    def is_crowded(self, offers: Assortments, more: int = 0) -> bool:
        """Whether there are too many coordinates, with those that are to join."""
        return offers.n_coordinates + more > MAX_COORDINATES

    def make_room(self, runs: Sequence[Run], counts: Sequence[ChoiceCounts]) -> list[ChoiceCounts]:
        """Let offers leave the runs and the counts; the counts that are left."""
        stay = offers_to_keep(counts[0], int(KEPT_SHARE * MAX_COORDINATES))
        gone = counts[0].assortments.n_offers - stay.size
        self.left += gone
        return drop_offers(runs, counts, stay) if gone else list(counts)

    def block(self, run: Run | None, least: int = 1) -> int:
        """How many choices to learn from at a time."""
        if run is None or not is_quick(run):
            return least
        return max(least, -(-self.copies * run.solver.assortments.n_coordinates // COORDINATES_PER_CHOICE))

    def remark(self, run: Run | None) -> str:
        """What the market's growth costs the model now, in a sentence or two; empty where it costs nothing."""
        said = []
        if run is not None and is_quick(run):
            size = run.solver.assortments.n_coordinates
            until = (
                f"until {size:,} more choices arrive"
                if size <= MAX_PROGRAM_COORDINATES
                else f"beyond {MAX_PROGRAM_COORDINATES:,} coordinates"
            )
            said.append(
                f"The market has grown to {size:,} coordinates: a quick search replaces the oracle {until}. "
                f"The gap is wide, and the model learns {self.block(run):,} choices at a time."
            )
        if self.left:
            said.append(
                f"The {self.left:,} offers with the fewest choices were dropped, because there are more than "
                f"{MAX_COORDINATES:,} coordinates: use a half-life, a window, or fewer different offers."
            )
        return " ".join(said)

    @classmethod
    def from_content(cls, content: Mapping[str, Any] | None, copies: int, choices: int) -> "StreamPace":
        """What ``asdict`` gave; files of earlier versions have none, and their programs are paid for."""
        if content is None:
            return cls(copies, choices)
        pace = cls(**content)
        check_whole("number of choices", *content.values())
        if pace.copies != copies or pace.built > pace.choices:
            raise ValueError("its pace is that of another stream")
        return pace


def is_small(offers: Assortments) -> bool:
    """Whether programs for these offers are built at once."""
    return offers.n_coordinates <= SMALL_COORDINATES and offers.n_items <= SMALL_ITEMS


def is_quick(run: Run) -> bool:
    """Whether a run has a quick oracle."""
    return isinstance(run.solver.oracle, QuickOracle)


def may_serve(run: Run, counts: ChoiceCounts, dense: EntropyFollower) -> bool:
    """Whether a maximum-entropy model can keep up: not in a market that is followed quickly.

    Beyond 250 coordinates nor right after new items, until as many choices have come since the last fit.
    """
    offers = counts.assortments
    paid = offers.n_coordinates <= MAX_COORDINATES_REFIT or dense.choices - dense.fitted[0] >= offers.n_coordinates
    return not is_quick(run) and (paid or dense.fit is None or dense.knows(offers))


def _quicker(run: Run, offers: Assortments) -> QuickOracle:
    """A quick oracle that starts where the run has come to."""
    before, (ties, seed) = run.solver.oracle, tie_rule(run.solver.oracle)
    turn, start = 0, np.frombuffer(next(reversed(run.state.weights), b""), dtype=np.int64)
    if isinstance(before, QuickOracle):
        turn, start = before.turn, before.start
    started = extend_rankings(start[None, :], offers.n_items, ties, seed)
    if offers.order:
        started = offers.precedence.settle(started, start.size)
    return QuickOracle(offers, ties, seed, turn, started[0])
