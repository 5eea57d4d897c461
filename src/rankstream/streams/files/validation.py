"""What a checkpoint says must fit together: a file that somebody changed is refused before anything is played on it."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts, WindowCounts, make_counts
from rankstream.solver.loop import Solver, State

MAX_MAGNITUDE = 1e100  # no sum of rounds or choices comes near it, and its square is still a number
SUM_TOLERANCE = 1e-6  # by which sums of many rounds may differ, relative to their size


def check_run(solver: Solver, state: State, counts: ChoiceCounts | None) -> None:
    """Refuse sums, weights and counts that no run can have come to."""
    offers, sums, fresh = solver.assortments, state.sums, solver.init()
    for name in ("vertex", "frequencies", "dual"):
        check_numbers(f"sums of {name}", getattr(sums, name), getattr(fresh.sums, name).size)
    check_numbers("latest frequencies", sums.latest, offers.n_coordinates if sums.latest.size else 0)
    check_numbers("totals", [sums.total_weight, sums.answer, sums.offset, sums.potential])
    if state.round < 0 or state.observations < 0 or sums.total_weight < 0:  # observations are NaN where unknown
        raise ValueError("it has played fewer than 0 rounds")
    if state.seen is not None and state.seen.shape != (offers.n_coordinates,):
        raise ValueError(f"it has seen {state.seen.shape} coordinates of {offers.n_coordinates}")
    _check_learner(state.learner, fresh.learner)
    weights = np.array(list(state.weights.values()))
    check_numbers("weights of rankings", weights, least=0.0)
    _check_sum("its rankings weigh", float(weights.sum()), sums.total_weight)
    if state.round and isinstance(offers, Assortments):
        if sums.total_weight <= 0 or sums.vertex.min() < -SUM_TOLERANCE * sums.total_weight:
            raise ValueError("its rounds weigh nothing, or less")
        for total in np.add.reduceat(sums.vertex, offers.indptr[:-1]).tolist():
            _check_sum("the choices from an offer weigh", total, sums.total_weight)
    if counts is not None:
        _check_counts(counts)


def check_numbers(what: str, values: Any, size: int | None = None, least: float = -MAX_MAGNITUDE) -> None:
    """Refuse what is not a row of finite numbers, of a size and not below the least."""
    array = np.asarray(values)
    if array.ndim != 1 or (size is not None and array.size != size):
        raise ValueError(f"its {what} have the shape {array.shape}" + (f", not ({size},)" if size is not None else ""))
    if not ((array >= least) & (array <= MAX_MAGNITUDE)).all():
        raise ValueError(f"its {what} are not all finite, or below {max(least, -MAX_MAGNITUDE):g}")


def check_whole(what: str, *values: Any) -> None:
    """Refuse what is not a whole number of at least 0."""
    for value in values:
        if type(value) is not int or not 0 <= value < 2**62:
            raise ValueError(f"its {what} is {str(value)[:40]!r}, not a whole number")


def check_memory(own: dict[str, Any], memory: dict[str, Any], n_items: int) -> None:
    """Refuse a memory of an oracle that is not of the same kind as its own: compiled loops look up places in it."""
    for name, array in own.items():
        found, rows = memory[name], name == "pool"
        if found.dtype != array.dtype or found.shape[rows:] != array.shape[rows:] or found.shape[:rows] == (0,):
            raise ValueError(f"its oracle's {name} is of another kind")
        check_numbers(f"oracle's {name}", found.ravel())
    for name, size in (("asked", None), ("numbers", 2)):
        if name in memory:
            check_numbers(f"oracle's {name}", memory[name].astype(np.float64, casting="safe"), size)
    rankings = np.vstack([memory["pool"], *([memory["answered"]] if "asked" in memory else [])])
    if not (np.sort(rankings, axis=1) == np.arange(n_items)).all():
        raise ValueError("a ranking that its oracle knows does not order all items")
    known, chosen = memory["known"], memory["chosen"]
    if known.min(initial=0) < 0 or known.max(initial=0) > chosen.shape[-1]:
        raise ValueError("its oracle knows more corners than there are")
    if chosen.min(initial=0) < 0 or chosen.max(initial=0) >= max(1, memory["point"].size):
        raise ValueError("its oracle knows corners that are not there")


def check_detector(detector: Any) -> None:
    """Refuse a change detector whose parts are not of one market."""
    check_whole("number of choices", detector.records, detector.since, detector.halfway, *detector._pending)
    check_whole("restart", *(() if detector.restarted is None else (detector.restarted,)))
    check_numbers("evidence", [detector.statistic], least=0.0)
    for alarm in detector.alarms:
        check_whole("alarm", alarm.record, alarm.since)
        check_numbers("alarm", [alarm.statistic])
    offers = {run.solver.assortments for run in (detector.served, detector.fast)} | {detector._recent.assortments}
    if len(offers) > 1 or type(detector.counts) is not ChoiceCounts or type(detector._recent) is not DecayingCounts:
        raise ValueError("its change detector has two models of different markets")
    if max(detector._pending, default=0) >= detector.assortments.n_coordinates:
        raise ValueError("a choice that its change detector has scored is from no offer")


def check_live(live: Any) -> None:
    """Refuse counts that forget in another way than the settings say, and choices that wait and are none."""
    check_whole("number of records", live.records)
    check_choices(live._waiting)
    order = set() if live.prices is None else set(live.prices.order)
    if live.counts is not None and set(live.counts.assortments.order) != order:
        raise ValueError("its items are in another order than its price levels")
    for run in () if live.run is None else (live.run, *([live.detector.fast] if live.detector else ())):
        if min(getattr(run.solver.distance, "weights", None) or [1.0]) <= 0.0:
            raise ValueError("an offer weighs nothing, or less")
    if live.detect or live.counts is None:
        return
    made = make_counts(live.counts.assortments, live.half_life, live.window)
    if any(getattr(live.counts, name, None) != getattr(made, name, None) for name in ("__class__", "reach", "by")):
        raise ValueError("its counts forget in another way than its settings say")


def check_choices(choices: Iterable[Any]) -> None:
    """Refuse what are not pairs of an offer and the item chosen."""
    for offered, chosen, *_ in choices:
        labels = all(isinstance(item, str | int) or item is None for item in (*offered, chosen))
        if isinstance(offered, str) or not labels or chosen not in offered or len(set(offered)) < len(offered):
            raise ValueError("a choice that waits is not from its offer")


def _check_learner(state: Any, fresh: Any) -> None:
    """The state of a learner has arrays and numbers, as many as one that has played nothing."""
    found, own = (one if isinstance(one, tuple) else (one,) for one in (state, fresh))
    if type(state) is not type(fresh):
        raise ValueError("its learner's state is another learner's")
    for one, other in zip(found, own, strict=True):
        check_numbers("learner's state", np.ravel(one) if np.ndim(other) == 0 else one, np.size(other))


def _check_sum(what: str, found: float, expected: float) -> None:
    if not abs(found - expected) <= SUM_TOLERANCE * max(1.0, expected):
        raise ValueError(f"{what} {found:g}, and all rounds {expected:g}")


def _check_counts(counts: ChoiceCounts) -> None:
    offers = counts.assortments
    memory = counts.memory()
    now = float(getattr(counts, "now", 0.0))
    if now != -np.inf and not abs(now) <= MAX_MAGNITUDE:
        raise ValueError(f"its counts are of the time {now:g}")
    if isinstance(counts, WindowCounts):
        sizes = {array.shape for name, array in memory.items() if name != "now"}
        check_numbers("counted choices", memory["amounts"], least=0.0)
        check_numbers("times", memory["times"])
        where = memory["where"]
        if len(sizes) > 1 or (where.size and where.max() >= offers.n_coordinates):
            raise ValueError("its window has choices from no offer")
    check_numbers("counts", counts.tallies, offers.n_coordinates, 0.0)
    check_numbers("totals", counts.totals, offers.n_offers, 0.0)
    if "squares" in memory:
        check_numbers("squares", memory["squares"], offers.n_offers, 0.0)
    of_offers = np.add.reduceat(counts.tallies, offers.indptr[:-1])
    if not np.allclose(of_offers, counts.totals, rtol=SUM_TOLERANCE, atol=0.0):
        raise ValueError("the counts of an offer do not sum to its total")
