import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from experiments.counting_oracle import CountingOracle
from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream.data import simulate
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.oracles import SearchOracle
from rankstream.solver.loop import State
from rankstream.solver.runs import Run
from rankstream.streams.files import checkpoint, packing
from rankstream.streams.files.packing import pack, unpack
from rankstream.streams.runs.growth import grow

pytestmark = pytest.mark.quick

LEARNERS: dict[str, Any] = {
    "mirror-descent": learners.MirrorDescent(horizon=50, step=0.2),
    "strongly-convex-mirror-descent": learners.StronglyConvexMirrorDescent(power=2.0),
    "follow-the-leader": learners.FollowTheLeader(),
    "naive-frank-wolfe": learners.NaiveFrankWolfe(),
    "dual-averaging": learners.DualAveraging(),
}
COUNTS: dict[str, Callable[[Assortments], Any]] = {
    "all": ChoiceCounts,
    "decaying": lambda offers: DecayingCounts(offers, 100.0),
    "decaying by time": lambda offers: DecayingCounts(offers, 20.0, "time"),
    "window": lambda offers: WindowCounts(offers, 200),
    "window by time": lambda offers: WindowCounts(offers, 20.0, "time"),
}
MARKET = simulate.market(3, n_items=5, n_offers=6, n_test=5)


def observe(counts: Any, number: int) -> None:
    drawn = simulate.draw_choices(MARKET.assortments, MARKET.frequencies(), 20, np.random.default_rng(number))
    timed = {"time": number} if getattr(counts, "by", None) == "time" else {}
    counts.observe_coordinates(drawn, **timed)


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit, all the way down."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and one.tobytes() == bytes(other.tobytes())
    if isinstance(one, tuple):
        return type(one) is type(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(value, other[name]) for name, value in one.items())
    if hasattr(one, "__dict__"):
        return same(vars(one), vars(other))
    return bool(one == other) or (one != one and other != other)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("distance", ["l2", pytest.param("linf", marks=pytest.mark.slow)])
def test_a_resumed_run_equals_an_uninterrupted_one(learner: str, kind: str, distance: str, tmp_path: Path) -> None:
    offers = MARKET.assortments
    form = distances.make(distance, offers, 0.05, weights=tuple(np.linspace(0.5, 1.5, offers.n_offers).tolist()))
    solver = Solver(offers, form, LEARNERS[learner], oracles.auto(offers))
    state, counts = solver.init(), COUNTS[kind](offers)
    for number in range(30):
        observe(counts, number)
        state = solver.step(state, counts)
        if number == 11:
            state.forget(5.0)
            checkpoint.save(tmp_path / "run.npz", solver, state, counts)
    resumed = checkpoint.load(tmp_path / "run.npz")
    assert resumed.solver.distance == solver.distance
    assert resumed.solver.learner == solver.learner
    again, tallied = resumed.state, resumed.counts
    for number in range(12, 30):
        observe(tallied, number)
        again = resumed.solver.step(again, tallied)  # type: ignore[arg-type]
    assert same(state, again)
    assert same(counts, tallied)
    assert solver.snapshot(state) == resumed.solver.snapshot(again)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("learner", LEARNERS)
def test_compiled_rounds_resume_too(learner: str, tmp_path: Path) -> None:
    offers = MARKET.assortments
    solver = Solver(offers, distances.L2(offers, 0.05), LEARNERS[learner], oracles.auto(offers))
    whole, begun = Run(solver, tolerance=0.0), Run(solver, tolerance=0.0)
    target = ChoiceCounts(offers, np.rint(1000 * MARKET.frequencies())).target()
    whole.advance_many(target, 700)
    begun.advance_many(target, 300)
    checkpoint.save(tmp_path / "run.npz", solver, begun.state)
    resumed = checkpoint.load(tmp_path / "run.npz")
    assert resumed.counts is None
    rest = Run(resumed.solver, tolerance=0.0)
    rest.state = resumed.state
    rest.advance_many(target, 400)
    assert same(whole.state, rest.state)


@strategies.examples(25)
@given(strategies.assortments(), st.data())
def test_any_offers_survive(tmp_path_factory: Any, offers: Assortments, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("runs") / "run.npz"
    solver = Solver(offers, distances.MaxDifference(offers), learners.DualAveraging(), oracles.auto(offers))
    state = solver.init()
    for _ in range(data.draw(st.integers(0, 3))):
        state = solver.step(state, data.draw(strategies.frequencies(offers)))
    checkpoint.save(path, solver, state)
    resumed = checkpoint.load(path)
    assert resumed.solver.assortments == offers
    assert same(state, resumed.state)


@pytest.mark.parametrize("parts", [1, 2])
def test_oracles_that_learn_go_on_where_they_were(parts: int, tmp_path: Path, monkeypatch: Any) -> None:
    offers = simulate.market(5, n_items=9, n_offers=8).assortments
    oracle: Any = SearchOracle(offers, rounds=20, sweeps=2)
    if parts == 2:
        own = [(f"{item} {copy}" for item in offer) for copy in (1, 2) for offer in offers.offers]
        offers = Assortments(own)
        monkeypatch.setattr(oracles, "auto", lambda offers, ties, seed: SearchOracle(offers, ties, seed, rounds=20))
        oracle = oracles.ComponentsOracle(offers, oracles.auto)
    truth = np.random.default_rng(0).gamma(1.0, size=offers.n_coordinates)
    truth /= np.add.reduceat(truth, offers.indptr[:-1])[offers.owner]
    solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracle)
    state = solver.init()
    for number in range(20):
        state = solver.step(state, truth)
        if number == 9:
            checkpoint.save(tmp_path / "run.npz", solver, state)
    resumed = checkpoint.load(tmp_path / "run.npz")
    again = resumed.state
    for _ in range(10):
        again = resumed.solver.step(again, truth)
    assert same(state, again)
    assert solver.certificate(state) == resumed.solver.certificate(again)


def example() -> tuple[Solver, State]:
    offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    return solver, solver.step(solver.init(), [0.5, 0.5, 0.25, 0.75])


@pytest.mark.parametrize("name", ["l1", "l1.5", "l2", "l3", "linf", "max-difference", "squared-l2", "squared-l4", "kl"])
@pytest.mark.parametrize("weights", [None, (0.5, 2.0)])
def test_settings_of_every_distance_survive(name: str, weights: Any, tmp_path: Path) -> None:
    solver, _ = example()
    offers: Any = solver.assortments
    learner = learners.MirrorDescent(horizon=np.int64(7), step=np.float64(0.5))  # type: ignore[arg-type]
    seed: Any = np.int64(3)
    own = Solver(offers, distances.make(name, offers, weights=weights), learner, oracles.auto(offers, "last", seed))
    checkpoint.save(tmp_path / "run.npz", own, own.init())
    resumed = checkpoint.load(tmp_path / "run.npz").solver
    assert resumed.distance == own.distance
    assert resumed.learner == own.learner
    assert (resumed.oracle.ties, resumed.oracle.seed) == ("last", 3)  # type: ignore[attr-defined]


def test_a_grown_run_can_be_saved(tmp_path: Path) -> None:
    solver, state = example()
    solver, state = grow(solver, state, solver.assortments.extend([("tea", "pie", "rum")]))  # type: ignore[union-attr]
    checkpoint.save(tmp_path / "run.npz", solver, state)
    assert same(checkpoint.load(tmp_path / "run.npz").state, state)


def test_parts_of_ones_own_are_handed_over(tmp_path: Path) -> None:
    solver, state = example()
    path = tmp_path / "run.npz"
    rising = learners.DualAveraging(weighting=lambda number: float(number))
    own = replace(solver, oracle=CountingOracle(solver.oracle), learner=rising)
    checkpoint.save(path, own, state)
    with pytest.raises(ValueError, match="its learner, a DualAveraging, is not built in: pass one"):
        checkpoint.load(path)
    with pytest.raises(ValueError, match="its oracle, a CountingOracle, is not built in"):
        checkpoint.load(path, learner=rising)
    resumed = checkpoint.load(path, learner=rising, oracle=own.oracle)
    assert resumed.solver == own


def test_a_max_difference_of_earlier_versions_had_two_potentials() -> None:
    """Files up to 0.3 name the potential; the one that is left is built in."""
    offers = Assortments([("tea", "pie", "no"), ("pie", "no")])
    solver = Solver(offers, distances.MaxDifference(offers), learners.DualAveraging(), oracles.auto(offers))
    header, arrays = pack(solver, solver.init(), None)
    header["distance"]["settings"]["kind"] = "entropy"
    assert unpack((header, arrays), {})[0].distance == solver.distance
    header["distance"]["settings"]["kind"] = "euclidean"
    with pytest.raises(ValueError, match="a MaxDifference with a Euclidean potential, is not built in: pass one"):
        unpack((header, arrays), {})


def test_what_cannot_be_saved_says_so(tmp_path: Path) -> None:
    solver, state = example()
    path = tmp_path / "run.npz"
    other = ChoiceCounts(Assortments([("a", "b")]))
    with pytest.raises(ValueError, match="other assortments than the solver"):
        checkpoint.save(path, solver, state, other)
    offers = Assortments([(("a", 1), "b")])
    odd = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    with pytest.raises(ValueError, match=r"item \('a', 1\) cannot be saved"):
        checkpoint.save(path, odd, odd.init())
    with pytest.raises(ValueError, match="does not exist"):
        checkpoint.save(tmp_path / "nowhere" / "run.npz", solver, state)
    with pytest.raises(ValueError, match="Mine cannot be saved: only ChoiceCounts"):
        checkpoint.save(path, solver, state, Mine(solver.assortments))  # type: ignore[arg-type]
    state.learner = "mine"
    with pytest.raises(ValueError, match="a str, cannot be saved"):
        checkpoint.save(path, solver, state)
    assert not list(tmp_path.iterdir())


class Mine(ChoiceCounts):
    pass


@pytest.mark.slow
def test_damaged_files_are_explained(tmp_path: Path) -> None:
    solver, state = example()
    path = tmp_path / "run.npz"
    checkpoint.save(path, solver, state, ChoiceCounts(solver.assortments, [1, 1, 1, 3]))  # type: ignore[arg-type]
    whole = path.read_bytes()
    for size in (0, 1, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="not a complete checkpoint"):
            checkpoint.load(path)
    random = np.random.default_rng(0)
    for _ in range(1000):
        broken = bytearray(whole)
        broken[random.integers(len(whole))] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(broken))
        with suppress(ValueError):
            assert same(checkpoint.load(path).state, state)  # the bit was in a part of the archive that says nothing
    path.write_text("{}")
    with pytest.raises(ValueError, match="not a complete checkpoint"):
        checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not a rankstream checkpoint"),
        ({"version": 99}, "has version 99, this rankstream reads up to 2"),
        ({"runs": [{}]}, "its digest is of another content"),
        ({"weights": np.ones(9)}, "its digest is of another content"),
        ({"version": 1, "digest": None, "orders": np.zeros((1, 3), dtype=np.int64)}, "does not order all items"),
        ({"version": 1, "digest": None, "sums.dual": np.array(["a"])}, "damaged checkpoint"),
    ],
)
def test_files_that_do_not_fit_are_explained(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    solver, state = example()
    path = tmp_path / "run.npz"
    checkpoint.save(path, solver, state, ChoiceCounts(solver.assortments, [1, 1, 1, 3]))  # type: ignore[arg-type]
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    for name, value in change.items():
        if isinstance(value, np.ndarray):
            arrays[f"0.{name}"] = value
        elif value is None:
            del arrays[name]
        else:
            header[name] = value
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        checkpoint.load(path)


def test_searches_in_parts_of_an_oracle_are_remembered() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("x", "y"), ("y", "z")])
    parts = oracles.ComponentsOracle(offers, oracles.SearchOracle)
    found = packing._learning(parts)
    assert [(prefix, type(inner)) for prefix, inner in found] == [
        ("0.", oracles.SearchOracle), ("1.", oracles.SearchOracle),
    ]  # fmt: skip
    assert [inner for _, inner in found] == parts.parts
    assert packing._learning(oracles.DenseOracle(offers)) == []
