"""What is checked when a saved run is loaded: every limit from both sides, without a file."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.distances import L2
from rankstream.learners import DualAveraging, MirrorDescent
from rankstream.oracles import DenseOracle
from rankstream.solver.loop import Solver
from rankstream.streams.files import packing
from rankstream.streams.files.packing import MAX_MAGNITUDE, SUM_TOLERANCE

pytestmark = pytest.mark.quick
OFFERS = Assortments([("a", "b", "c"), ("a", "c")])


def refused(message: str) -> Any:
    return pytest.raises(ValueError, match=message)


def test_vectors_have_finite_numbers_of_a_size() -> None:
    packing.check_numbers("sums", [MAX_MAGNITUDE, -MAX_MAGNITUDE, 0.0], 3)
    packing.check_numbers("sums", [0.0, 1.0], least=0.0)
    packing.check_numbers("sums", [])
    for wrong in ([np.nan], [np.inf], [2.0 * MAX_MAGNITUDE], [-2.0 * MAX_MAGNITUDE]):
        with refused("its sums are not all finite, or below"):
            packing.check_numbers("sums", wrong)
    with refused("not all finite, or below 0"):
        packing.check_numbers("sums", [1.0, -1e-9], least=0.0)
    with refused(r"have the shape \(2,\), not \(3,\)"):
        packing.check_numbers("sums", [1.0, 2.0], 3)
    with refused(r"have the shape \(1, 2\)$"):
        packing.check_numbers("sums", [[1.0, 2.0]])
    with refused(r"have the shape \(\)"):
        packing.check_numbers("sums", 1.0, 1)


@pytest.mark.parametrize("value", [0, 1, 2**62 - 1])
def test_whole_numbers(value: int) -> None:
    packing.check_whole("turn", 5, value)


@pytest.mark.parametrize("value", [-1, 2**62, 1.0, True, None, "3"])
def test_what_is_no_whole_number(value: Any) -> None:
    with refused("its turn is .*, not a whole number"):
        packing.check_whole("turn", 5, value)


def test_sums_agree_up_to_rounding() -> None:
    for expected, unit in ((1.0, 1.0), (0.25, 1.0), (1000.0, 1000.0)):
        packing._check_sum("they weigh", expected + 0.99 * SUM_TOLERANCE * unit, expected)
        packing._check_sum("they weigh", expected - 0.99 * SUM_TOLERANCE * unit, expected)
        for way in (1.01, -1.01):
            with refused("they weigh"):
                packing._check_sum("they weigh", expected + way * SUM_TOLERANCE * unit, expected)
    with refused("they weigh nan"):
        packing._check_sum("they weigh", np.nan, 1.0)


@pytest.mark.parametrize("choice", [(("a", "b"), "a"), (("a", None, 3), None), (["a"], "a", 7.0)])
def test_waiting_choices(choice: Any) -> None:
    packing.check_choices([choice])


@pytest.mark.parametrize(
    "choice", [(("a", "b"), "c"), ("ab", "a"), (("a", "a"), "a"), (("a", 1.5), "a"), (("a", 1.5), 1.5)]
)
def test_waiting_choices_that_are_none(choice: Any) -> None:
    with refused("a waiting choice is not from its offer"):
        packing.check_choices([(("a", "b"), "a"), choice])


def memory(**changed: Any) -> dict[str, Any]:
    own = {
        "pool": np.array([[0, 1, 2], [2, 1, 0]]), "known": np.array([0, 4]), "chosen": np.array([[0, 3, 1, 2]]),
        "point": np.zeros(4), "asked": np.array([1.5, 2.0]), "answered": np.array([[1, 0, 2]]),
        "numbers": np.array([1, 2]),
    }  # fmt: skip
    return own | changed


def test_what_an_oracle_remembers() -> None:
    packing.check_memory(memory(), memory(), 3)
    packing.check_memory(memory(), memory(pool=np.array([[2, 0, 1]])), 3)  # any number of rankings


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pool": np.zeros((0, 3), dtype=int)}, "pool is of another kind"),
        ({"pool": np.array([[0.0, 1.0, 2.0]])}, "pool is of another kind"),
        ({"pool": np.array([[0, 1, 2, 3]])}, "pool is of another kind"),
        ({"point": np.zeros(5)}, "point is of another kind"),
        ({"point": np.array([0.0, 0.0, np.nan, 0.0])}, "oracle's point are not all finite"),
        ({"pool": np.array([[0, 1, 1]])}, "does not order all items"),
        ({"answered": np.array([[0, 0, 1]])}, "does not order all items"),
        ({"known": np.array([-1, 0])}, "too many corners"),
        ({"known": np.array([0, 5])}, "too many corners"),
        ({"chosen": np.array([[0, 1, 2, 4]])}, "corners that do not exist"),
        ({"chosen": np.array([[0, 1, 2, -1]])}, "corners that do not exist"),
        ({"asked": np.array([1.5, np.nan])}, "asked are not all finite"),
    ],
)
def test_what_no_oracle_remembers(changed: Any, message: str) -> None:
    with refused(message):
        packing.check_memory(memory(), memory(**changed), 3)


def a_run(learner: Any = None) -> tuple[Any, Any]:
    solver = Solver(OFFERS, L2(OFFERS), learner or DualAveraging(), DenseOracle(OFFERS))
    state = solver.init()
    state.round, state.observations = 2, 10.0
    state.sums.total_weight = 2.0
    state.sums.vertex = np.array([2.0, 0.0, 0.0, 1.0, 1.0])
    state.weights = {b"x": 1.5, b"y": 0.5}
    return solver, state


def test_a_run_that_can_be() -> None:
    packing.check_run(*a_run(), None)
    packing.check_run(*a_run(MirrorDescent()), ChoiceCounts(OFFERS, [1, 2, 3, 4, 5]))
    solver, state = a_run()
    state.sums.latest, state.seen = np.full(5, 0.5), np.ones(5, dtype=bool)
    state.observations = np.nan  # not known
    packing.check_run(solver, state, None)
    packing.check_run(solver, solver.init(), None)  # no round yet


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: setattr(state, "round", -1), "negative number of rounds"),
        (lambda state: setattr(state, "observations", -1.0), "negative number of rounds"),
        (lambda state: setattr(state.sums, "total_weight", -2.0), "negative number of rounds"),
        (lambda state: setattr(state, "seen", np.ones(4, dtype=bool)), r"has seen \(4,\) coordinates of 5"),
        (lambda state: setattr(state.sums, "latest", np.ones(4)), "latest frequencies have the shape"),
        (lambda state: setattr(state.sums, "vertex", np.ones(4)), "sums of vertex have the shape"),
        (lambda state: setattr(state.sums, "frequencies", np.ones(6)), "sums of frequencies have the shape"),
        (lambda state: setattr(state.sums, "dual", np.ones(6)), "sums of dual have the shape"),
        (lambda state: setattr(state.sums, "potential", np.nan), "totals are not all finite"),
        (lambda state: setattr(state.sums, "answer", np.inf), "totals are not all finite"),
        (lambda state: setattr(state.sums, "offset", np.inf), "totals are not all finite"),
        (lambda state: setattr(state, "weights", {b"x": 2.5, b"y": -0.5}), "weights of rankings are not all finite"),
        (lambda state: setattr(state, "weights", {b"x": 1.5}), "its rankings weigh 1.5, and all rounds 2"),
        (lambda state: setattr(state.sums, "vertex", np.array([3.0, 0.0, -1.0, 1.0, 1.0])), "no positive weight"),
        (lambda state: setattr(state.sums, "vertex", np.array([1.0, 0.5, 0.0, 1.0, 1.0])), "from an offer weigh 1.5"),
        (lambda state: setattr(state, "learner", state.learner.dual), "belongs to another learner"),
        (lambda state: setattr(state, "learner", state.learner._replace(dual=np.ones(4))), "learner's state have"),
        (lambda state: setattr(state, "learner", state.learner._replace(squares=np.nan)), "learner's state are"),
    ],
)
def test_runs_that_cannot_be(change: Any, message: str) -> None:
    solver, state = a_run()
    change(state)
    with refused(message):
        packing.check_run(solver, state, None)


def test_rounds_have_some_weight() -> None:
    solver, state = a_run()
    state.sums.total_weight, state.weights, state.sums.vertex = 0.0, {}, np.zeros(5)
    with refused("no positive weight"):
        packing.check_run(solver, state, None)


def window(**changed: Any) -> WindowCounts:
    counts = WindowCounts(OFFERS, 10)
    counts.observe([("a", "b", "c"), ("a", "c")], ["a", "c"])
    for name, value in changed.items():
        setattr(counts, f"_{name}", value)
    return counts


def test_counts_that_can_be() -> None:
    packing._check_counts(ChoiceCounts(OFFERS, [1, 2, 3, 4, 5]))
    packing._check_counts(ChoiceCounts(OFFERS))
    packing._check_counts(window())
    packing._check_counts(WindowCounts(OFFERS, 10.0, "time"))  # its time is that before all times
    packing._check_counts(window(where=np.array([0, 4])))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"where": np.array([0, 5])}, "belong to no offer"),
        ({"times": np.zeros(3)}, "belong to no offer"),
        ({"amounts": np.array([1.0, -1.0])}, "counted choices are not all finite"),
        ({"times": np.array([0.0, np.nan])}, "times are not all finite"),
        ({"tallies": np.zeros(4)}, "counts have the shape"),
        ({"tallies": np.array([1.0, 0.0, 0.0, 0.0, -1.0])}, "counts are not all finite"),
        ({"totals": np.array([1.0, -1.0])}, "totals are not all finite"),
        ({"totals": np.array([1.0, 2.0])}, "do not sum to its total"),
    ],
)
def test_windows_that_cannot_be(changed: Any, message: str) -> None:
    with refused(message):
        packing._check_counts(window(**changed))


def test_fading_counts_that_cannot_be() -> None:
    counts = DecayingCounts(OFFERS, 5.0)
    counts.observe([("a", "c")], ["a"])
    packing._check_counts(counts)
    for squares in (np.zeros(3), np.array([-1.0, 0.0])):
        counts._squares = squares
        with refused("its squares"):
            packing._check_counts(counts)
    for now in (np.nan, np.inf, 2.0 * MAX_MAGNITUDE):
        late = DecayingCounts(OFFERS, 5.0)
        late.now = now
        with refused("its counts have the time"):
            packing._check_counts(late)


def a_detector(**changed: Any) -> Any:
    run = SimpleNamespace(solver=SimpleNamespace(assortments=OFFERS))
    own = {
        "records": 5, "since": 1, "halfway": 2, "_pending": [0, 4], "restarted": None, "statistic": 0.0,
        "alarms": [SimpleNamespace(record=4, since=1, statistic=-2.0)], "published": run, "fast": run,
        "_recent": DecayingCounts(OFFERS, 5.0), "counts": ChoiceCounts(OFFERS), "assortments": OFFERS,
    }  # fmt: skip
    return SimpleNamespace(**(own | changed))


def test_a_detector_that_can_be() -> None:
    packing.check_detector(a_detector())
    packing.check_detector(a_detector(_pending=[], restarted=3, alarms=[]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"records": -1}, "number of choices is"),
        ({"halfway": 1.5}, "number of choices is"),
        ({"since": None}, "number of choices is"),
        ({"_pending": [-1]}, "number of choices is"),
        ({"_pending": [5]}, "belongs to no offer"),
        ({"restarted": -3}, "restart is"),
        ({"statistic": -0.1}, "evidence are not"),
        ({"alarms": [SimpleNamespace(record=-4, since=1, statistic=2.0)]}, "alarm is"),
        ({"alarms": [SimpleNamespace(record=4, since="x", statistic=2.0)]}, "alarm is"),
        ({"alarms": [SimpleNamespace(record=4, since=1, statistic=np.nan)]}, "alarm are not"),
        ({"counts": DecayingCounts(OFFERS, 5.0)}, "different markets"),
        ({"_recent": ChoiceCounts(OFFERS)}, "different markets"),
        ({"_recent": DecayingCounts(Assortments([("a", "b")]), 5.0)}, "different markets"),
    ],
)
def test_detectors_that_cannot_be(changed: Any, message: str) -> None:
    with refused(message):
        packing.check_detector(a_detector(**changed))


def a_live(**changed: Any) -> Any:
    run = SimpleNamespace(solver=SimpleNamespace(distance=SimpleNamespace(weights=(0.5, 1.5))))
    own = {
        "records": 3, "_waiting": [], "prices": None, "counts": ChoiceCounts(OFFERS), "run": run, "detector": None,
        "detect": False, "half_life": None, "window": None,
    }  # fmt: skip
    return SimpleNamespace(**(own | changed))


def test_a_live_model_that_can_be() -> None:
    packing.check_live(a_live())
    packing.check_live(a_live(counts=None, run=None))
    plain = SimpleNamespace(solver=SimpleNamespace(distance=SimpleNamespace(weights=None)))
    packing.check_live(a_live(run=plain, detector=SimpleNamespace(fast=plain)))
    packing.check_live(a_live(half_life=5.0, counts=DecayingCounts(OFFERS, 5.0)))
    packing.check_live(a_live(window=7.0, counts=WindowCounts(OFFERS, 7.0)))
    packing.check_live(a_live(detect=True, half_life=5.0))  # a detector has counts of its own


NO_WEIGHT = SimpleNamespace(solver=SimpleNamespace(distance=SimpleNamespace(weights=(0.0, 1.0))))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"records": -1}, "number of records"),
        ({"_waiting": [(("a",), "b")]}, "waiting choice"),
        ({"prices": SimpleNamespace(order=[("a", "b")])}, "another order"),
        ({"run": NO_WEIGHT}, "no positive weight"),
        ({"detector": SimpleNamespace(fast=NO_WEIGHT)}, "no positive weight"),
        ({"half_life": 5.0}, "forget differently"),
        ({"half_life": 5.0, "counts": DecayingCounts(OFFERS, 6.0)}, "forget differently"),
        ({"half_life": 5.0, "counts": WindowCounts(OFFERS, 5.0)}, "forget differently"),
        ({"window": 7.0, "counts": WindowCounts(OFFERS, 7.0, "time")}, "forget differently"),
    ],
)
def test_live_models_that_cannot_be(changed: Any, message: str) -> None:
    with refused(message):
        packing.check_live(a_live(**changed))
