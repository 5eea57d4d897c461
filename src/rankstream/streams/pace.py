"""The pace of a stream: how much work a growing market gets, from its size and number of choices alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream import oracles
from rankstream._core.threads import one_blas_thread
from rankstream.data import Assortments, ChoiceCounts
from rankstream.oracles import Explained, QuickOracle
from rankstream.solver.runs import Run
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.runs.growth import drop_offers, extend_rankings, grow, offers_to_keep, tie_rule

MAX_COORDINATES_REFIT = 250  # up to here, max-entropy is refitted for every new item; benchmarks/streams.py times all
SMALL_COORDINATES, SMALL_ITEMS = 1_000, 16  # up to here, programs are built for every new offer
MAX_PROGRAM_COORDINATES = 10_000  # beyond, programs are no longer built for new offers
PROGRAM_BYTES = 16e6  # of a table, built in 0.1 s: ten markets grow at once (benchmarks/learner_memory.py)
COORDINATES_PER_CHOICE = 200  # work that one choice justifies
MAX_COORDINATES = 1_000_000  # beyond, offers are dropped
KEPT_SHARE = 0.75  # of the coordinates that stay then


@dataclass
class StreamPace:
    """When a stream builds programs, how many choices it learns at a time, and how many offers it dropped.

    With up to 1,000 coordinates and 16 items, an oracle's programs are built whenever offers join. Up to 10,000
    coordinates, they are built once there are as many new choices as coordinates. In between and beyond, a
    ``QuickOracle`` takes over: choices wait until there is one for every 200 coordinates, and then 5 rounds are
    played. Beyond 1,000,000 coordinates offers are dropped, those with the fewest choices first, older ones first.

    >>> pace, offers = StreamPace(), Assortments([range(k, k + 40) for k in range(50)])
    >>> pace.affords(offers)
    False
    >>> pace.choices += 2_000
    >>> pace.affords(offers)
    True
    """

    choices: int = 0
    built: int = 0
    left: int = 0

    def affords(self, offers: Assortments) -> bool:
        """Whether programs for these offers may be built now."""
        return is_small(offers) or self.choices - self.built >= offers.n_coordinates <= MAX_PROGRAM_COORDINATES

    def first_oracle(self, offers: Assortments, seed: int, choices: int) -> Explained:
        """Return the first oracle of a market: a quick one if most choices came from new offers."""
        if not is_small(offers) and 2 * offers.n_offers > choices:
            return QuickOracle(offers, seed=seed)
        return oracles.auto(offers, seed=seed, memory=PROGRAM_BYTES)

    def keep_up(self, runs: Sequence[Run], offers: Assortments) -> None:
        """Add new offers to the runs, and build programs if there were enough choices."""
        grown = runs[0].solver.assortments != offers
        fully = self.affords(offers)
        if not grown and not (fully and is_quick(runs[0])):
            return
        for run in runs:
            if not fully:
                with one_blas_thread():
                    run.solver, run.state = grow(run.solver, run.state, offers, _quick_oracle(run, offers))
                continue
            program = oracles.auto(offers, *tie_rule(run.solver.oracle), memory=PROGRAM_BYTES)
            if grown:
                run.solver, run.state = grow(run.solver, run.state, offers, program)
            else:
                run.solver = replace(run.solver, oracle=program)
        self.built = self.choices if fully else self.built

    def is_crowded(self, offers: Assortments) -> bool:
        """Whether there are too many coordinates."""
        return offers.n_coordinates > MAX_COORDINATES

    def make_room(self, runs: Sequence[Run], counts: Sequence[ChoiceCounts]) -> list[ChoiceCounts]:
        """Drop offers from the runs and the counts; return the new counts."""
        stay = offers_to_keep(counts[0], int(KEPT_SHARE * MAX_COORDINATES))
        gone = counts[0].assortments.n_offers - stay.size
        self.left += gone
        return drop_offers(runs, counts, stay) if gone else list(counts)

    def block(self, run: Run | None) -> int:
        """Return the number of choices to learn at a time."""
        if run is None or not is_quick(run):
            return 1
        return max(1, -(-run.solver.assortments.n_coordinates // COORDINATES_PER_CHOICE))

    def remark(self, run: Run | None) -> str:
        """Explain how the market's size limits the model; empty if it does not."""
        sentences = []
        if run is not None and is_quick(run):
            size, until = run.solver.assortments.n_coordinates, f"beyond {MAX_PROGRAM_COORDINATES:,} coordinates"
            if size <= MAX_PROGRAM_COORDINATES:
                until = f"until {size:,} more choices arrive"
            sentences.append(
                f"The market has grown to {size:,} coordinates: a quick search replaces the oracle {until}. "
                f"The gap is wide, and the model learns {self.block(run):,} choices at a time."
            )
        if self.left:
            sentences.append(
                f"The {self.left:,} offers with the fewest choices were dropped, because there are more than "
                f"{MAX_COORDINATES:,} coordinates: use a half-life, a window, or fewer different offers."
            )
        return " ".join(sentences)

    @classmethod
    def from_content(cls, content: Mapping[str, Any] | None, choices: int) -> "StreamPace":
        """Restore a pace from its fields; files of earlier versions have others, or none, and all choices count."""
        if content is None:
            return cls(choices)
        return cls(**{name: content[name] for name in ("choices", "built", "left")})


def is_small(offers: Assortments) -> bool:
    """Whether programs for these offers are built at once."""
    return offers.n_coordinates <= SMALL_COORDINATES and offers.n_items <= SMALL_ITEMS


def is_quick(run: Run) -> bool:
    """Whether a run has a quick oracle."""
    return isinstance(run.solver.oracle, QuickOracle)


def may_serve(run: Run, counts: ChoiceCounts, dense: EntropyFollower) -> bool:
    """Whether a maximum-entropy model can keep up: not while the oracle is a quick one.

    Beyond 250 coordinates, a new item also pauses it until there are as many new choices as coordinates.
    """
    offers = counts.assortments
    due = offers.n_coordinates <= MAX_COORDINATES_REFIT or dense.choices - dense.fitted[0] >= offers.n_coordinates
    return not is_quick(run) and (due or dense.fit is None or dense.knows(offers))


def _quick_oracle(run: Run, offers: Assortments) -> QuickOracle:
    before, (ties, seed) = run.solver.oracle, tie_rule(run.solver.oracle)
    turn, start = 0, np.frombuffer(next(reversed(run.state.weights), b""), dtype=np.int64)
    if isinstance(before, QuickOracle):
        turn, start = before.turn, before.start
    rankings = extend_rankings(start[None, :], offers.n_items, ties, seed)
    if offers.order:
        rankings = offers.precedence.settle(rankings, start.size)
    return QuickOracle(offers, ties, seed, turn, rankings[0])
