from collections.abc import Sequence
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import naive
import strategies
from rankstream import Assortments, ChoiceCounts, checks, distances
from rankstream._core.types import Vec
from rankstream.distances import KL, L1, L2, Distance, HighNorm, LInf, LowNorm, MaxDifference

pytestmark = pytest.mark.quick

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "d", "x"), ("x", "a"), ("d", "x")])
WEIGHTS = (0.5, 2.0, 1.0, 0.25)
NORMS = ["l1", "l1.1", "l1.5", "l2", "l3", "l10", "linf"]


EVERY_DISTANCE = sorted(
    [f"{name} {smoothing}" for name in [*NORMS, "max-difference"] for smoothing in (0.0, 0.05, 1.5)]
    + ["squared-l2", "squared-l4", "kl", "kl 1e-06"]
)
FOR_ANY_DATA = [title for title in EVERY_DISTANCE if title != "kl"]  # whose floor is too high for rare choices


def make_distance(title: str, offers: Assortments, weights: tuple[float, ...] | None = None) -> Distance:
    """One of all kinds of distances in the library, plain or smoothed."""
    name, _, setting = title.partition(" ")
    if name == "kl" and setting:
        return KL(offers, weights, floor=float(setting))
    return distances.make(name, offers, float(setting or 0.0), weights)


@pytest.mark.parametrize(
    ("weights", "seeds"),
    [
        pytest.param(WEIGHTS, [0], id="weighted"),
        pytest.param(WEIGHTS, [1, 2], id="weighted, other seeds", marks=pytest.mark.slow),
        pytest.param(None, range(3), id="plain", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", EVERY_DISTANCE)
def test_every_distance_conforms(name: str, weights: tuple[float, ...] | None, seeds: Sequence[int]) -> None:
    for seed in seeds:
        checks.check_distance(make_distance(name, OFFERS, weights), OFFERS, seed)


@strategies.examples(60)
@given(strategies.assortments(), st.data())
def test_distances_conform_on_any_offers(offers: Assortments, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(FOR_ANY_DATA))
    checks.check_distance(make_distance(name, offers), offers, data.draw(st.integers(0, 2**32 - 1)))


def payoff_maximum(distance: Distance, x: Vec, p: Vec) -> float:
    """The largest payoff by projected gradient ascent from the start: a generic solver with nothing but prox."""
    dual, best = distance.start(), -inf
    for t in range(1, 4001):
        best = max(best, float(distance.costs(dual) @ x) - distance.offset(dual, p))
        slope = distance.pull(x, dual, p) - distance.smoothing * distance.mirror(dual)
        dual = distance.prox(-slope / (distance.smoothing + 0.05 * sqrt(t)) - distance.mirror(dual))
    return best


@pytest.mark.slow
@strategies.compiled_only
@pytest.mark.parametrize("name", [name for name in EVERY_DISTANCE if not name.startswith("kl")])
def test_value_is_what_a_generic_solver_finds(name: str) -> None:
    random = np.random.default_rng(1)
    distance = make_distance(name, OFFERS)
    x, p = OFFERS.vertex(random.permutation(5)), OFFERS.vertex(random.permutation(5))
    x = 0.5 * x + 0.5 * OFFERS.vertex(random.permutation(5))
    assert distance.value(x, p) == pytest.approx(payoff_maximum(distance, x, p), abs=3e-3)


@strategies.examples(50)
@given(st.floats(2.001, 60.0), st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 30.0]))
def test_projection_onto_power_balls_is_exact(power: float, size: int, seed: int, scale: float) -> None:
    point = np.random.default_rng(seed).normal(size=size) * scale
    distance = LowNorm(Assortments([(k,) for k in range(size)]), q=power / (power - 1.0))
    found = distance.project(point)
    norm = float((np.abs(found) ** power).sum())
    assert norm <= 1.0 + 1e-13
    if norm < 1.0 - 1e-13:
        assert found.tolist() == point.tolist()
    else:  # the residual is a non-negative multiple of the ball's normal, to machine precision
        normal = np.sign(found) * np.abs(found) ** (power - 1.0)
        price = (point - found) @ normal / (normal @ normal)
        assert price >= 0.0
        assert found + price * normal == pytest.approx(point, abs=1e-12 * (1.0 + scale))


def test_projection_onto_power_balls_against_scipy() -> None:
    point = np.array([1.2, -0.7, 0.05, 2.0])
    distance = LowNorm(Assortments([(k,) for k in range(4)]), q=1.5)
    solved = minimize(
        lambda y: 0.5 * ((y - point) ** 2).sum(),
        np.zeros(4),
        constraints={"type": "ineq", "fun": lambda y: 1.0 - (np.abs(y) ** 3).sum()},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert distance.project(point) == pytest.approx(solved.x, abs=1e-5)


@given(strategies.assortments(), st.integers(0, 2**32 - 1))
def test_softmax_equals_its_twin(offers: Assortments, seed: int) -> None:
    point = np.random.default_rng(seed).normal(size=offers.n_coordinates)
    assert MaxDifference(offers).prox(-point) == pytest.approx(naive.softmax_by_offer(offers, point))


@given(st.integers(0, 2**32 - 1))
def test_closed_forms_of_the_papers_tables(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, p = (OFFERS.vertex(random.permutation(5)) * 0.3 + 0.7 * OFFERS.vertex(random.permutation(5)) for _ in range(2))
    z = x - p

    def huber(r: float, alpha: float) -> float:
        return r * r / (2 * alpha) if abs(r) <= alpha else abs(r) - alpha / 2

    assert L1(OFFERS).value(x, p) == pytest.approx(np.abs(z).sum())
    assert L1(OFFERS, 0.2).value(x, p) == pytest.approx(sum(huber(r, 0.2) for r in z))
    assert LowNorm(OFFERS, q=1.5).value(x, p) == pytest.approx((np.abs(z) ** 1.5).sum() ** (1 / 1.5))
    assert L2(OFFERS).value(x, p) == pytest.approx(np.linalg.norm(z))
    assert HighNorm(OFFERS, 0.2, q=4.0).value(x, p) == pytest.approx(huber((z**4).sum() ** 0.25, 0.6))
    assert LInf(OFFERS).value(x, p) == pytest.approx(np.abs(z).max())
    assert LInf(OFFERS, 0.2).value(x, p) == pytest.approx(0.2 * log((2 * np.cosh(z / 0.2)).sum()))
    assert distances.make("squared-l2", OFFERS).value(x, p) == pytest.approx(0.5 * z @ z)
    assert distances.make("squared-l3", OFFERS).value(x, p) == pytest.approx(0.5 * (np.abs(z) ** 3).sum() ** (2 / 3))
    assert MaxDifference(OFFERS).value(x, p) == pytest.approx(np.maximum.reduceat(z, OFFERS.indptr[:-1]).sum())
    assert KL(OFFERS, floor=1e-9).value(p, p) == pytest.approx(0.0, abs=1e-12)


def test_constants_are_those_of_the_papers_tables() -> None:
    m, n = OFFERS.n_offers, OFFERS.n_coordinates
    table = {
        "l1": (n / 2, sqrt(2 * m), n / 2),
        "l1.5": (n ** (1 / 3) / 2, sqrt(2 * m), n ** (1 / 3) / 2),
        "l2": (0.5, sqrt(2 * m), 0.5),
        "l4": (1.5, (2 * m) ** 0.25, 1.5),
        "linf": (log(2 * n), 1.0, log(2 * n)),
    }
    optimal = {
        "l1": sqrt(8 * m / (n * 101)),
        "l1.5": sqrt(8 * m / (n ** (1 / 3) * 101)),
        "l2": sqrt(4 * 2 * m / 101),
        "l4": sqrt(4 * (2 * m) ** 0.5 / (3 * 101)),
        "linf": sqrt(2 / (log(2 * n) * 101)),
    }
    for name, (width, bound, largest) in table.items():
        distance = distances.make(name, OFFERS)
        assert (distance.width, distance.grad_bound, distance.largest_potential) == pytest.approx(
            (width, bound, largest)
        )
        assert distance.lipschitz == 1.0
        assert distances.optimal_smoothing(distance, 100) == pytest.approx(optimal[name])
    squared = distances.make("squared-l2", OFFERS)
    assert (squared.smoothing, squared.lipschitz) == pytest.approx((1.0, sqrt(2 * m)))


@strategies.examples(40)
@given(strategies.assortments(most_items=5), st.data())
def test_propositions_1_and_2(offers: Assortments, data: st.DataObject) -> None:
    """Where p comes from rankings, x = p is optimal: distance 0, or the least that smoothing allows."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    corners = naive.all_vertices(offers)
    p = random.dirichlet(np.ones(3)) @ corners[random.integers(len(corners), size=3)]
    name = data.draw(st.sampled_from(FOR_ANY_DATA))
    distance = make_distance(name, offers)
    here = distance.value(p, p)
    if not distance.smoothing and not name.startswith("kl"):
        assert here == pytest.approx(0.0, abs=1e-12)
    for corner in corners:
        assert distance.value(0.9 * p + 0.1 * corner, p) >= here - 1e-9


@given(st.sampled_from(NORMS), st.sampled_from([0.01, 0.3, 2.0]), st.integers(0, 2**32 - 1))
def test_smoothing_error_is_bounded(name: str, alpha: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, p = (OFFERS.vertex(random.permutation(5)) for _ in range(2))
    plain, smooth = distances.make(name, OFFERS), distances.make(name, OFFERS, alpha)
    difference = smooth.value(x, p) - plain.value(x, p)
    room = alpha * smooth.largest_potential + 1e-12
    assert (0.0 <= difference + 1e-12 <= room) if name == "linf" else (-room <= difference <= 1e-12)


def test_weights_scale_offers() -> None:
    x, p = OFFERS.vertex([0, 1, 2, 3, 4]), OFFERS.vertex([4, 3, 2, 1, 0])
    scale = np.array(WEIGHTS)[OFFERS.owner]
    assert L2(OFFERS, weights=WEIGHTS).value(x, p) == pytest.approx(np.linalg.norm(scale * (x - p)))
    assert L1(OFFERS, weights=WEIGHTS).value(x, p) == pytest.approx(np.abs(scale * (x - p)).sum())
    counts = ChoiceCounts(OFFERS)
    counts.observe(("x", "a"), "a", 3)
    counts.observe(("d", "x"), "d", 1)
    assert distances.observation_weights(counts) == pytest.approx((0.0, 0.0, sqrt(3.0), 1.0))
    assert distances.observation_weights(counts, "share") == pytest.approx((0.0, 0.0, 3.0, 1.0))
    with pytest.raises(ValueError, match="no observations"):
        distances.observation_weights(ChoiceCounts(OFFERS))


@pytest.mark.parametrize("name", [*NORMS, "max-difference"])
def test_silence_pays_nothing_on_what_was_not_seen(name: str) -> None:
    random = np.random.default_rng(3)
    distance = distances.make(name, OFFERS)
    seen = (np.array([True, False, True, False]))[OFFERS.owner]
    dual = distance.prox(random.normal(size=distance.start().size))
    silent = distance.silence(dual, seen)
    assert distance.prox(-distance.mirror(silent)) == pytest.approx(silent)
    x, p = (OFFERS.vertex(random.permutation(5)) for _ in range(2))
    costs = distance.costs(silent)
    assert costs[~seen] @ (x - p)[~seen] == pytest.approx(0.0, abs=1e-12)
    assert costs[seen].tolist() == distance.costs(dual)[seen].tolist()
    with pytest.raises(ValueError, match="KL cannot leave out"):
        KL(OFFERS).silence(dual, seen)


def test_distances_by_name() -> None:
    assert distances.make("l2", OFFERS) == L2(OFFERS)
    assert distances.make("l1.5", OFFERS) == LowNorm(OFFERS, q=1.5)
    assert distances.make("l3", OFFERS, 0.5) == HighNorm(OFFERS, 0.5, q=3.0)
    assert distances.make(L2(OFFERS, 0.5), OFFERS) == L2(OFFERS, 0.5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("guess", {}, "Unknown distance 'guess': choose one of 'l1', 'l2'"),
        ("l0.5", {}, "The q of 'l0.5' is 0.5: it must be at least 1"),
        ("squared-l1", {}, "not smooth: only l_q norms with 2 <= q < infinity"),
        ("squared-linf", {}, "not smooth"),
        ("squared-l2", {"smoothing": 0.5}, "has its own smoothing"),
        ("kl", {"smoothing": 0.5}, "takes no smoothing"),
        ("l2", {"smoothing": -1.0}, "smoothing is -1.0"),
        ("l2", {"weights": (1.0,)}, "1 weights for 4 offers"),
        ("kl", {"weights": (1.0,)}, "1 weights for 4 offers"),
        ("l2", {"weights": (1.0, 1.0, 1.0, -1.0)}, "A weight is -1.0"),
        ("l2", {"weights": (0.0, 0.0, 0.0, 0.0)}, "weights are all 0"),
        (L2, {}, "neither a distance nor the name of one"),
        (None, {}, "neither a distance"),
    ],
)
def test_bad_distances_are_refused(name: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        distances.make(name, OFFERS, **options)  # type: ignore[arg-type]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="LowNorm is for 1 < q < 2"):
        LowNorm(OFFERS, q=2.5)
    with pytest.raises(ValueError, match="HighNorm is for 2 <= q"):
        HighNorm(OFFERS, q=1.5)
    with pytest.raises(ValueError, match="A weight is -1"):
        KL(OFFERS, weights=(1.0, 1.0, 1.0, -1.0))
    with pytest.raises(ValueError, match="Unknown kind of weights 'odd'"):
        distances.observation_weights(ChoiceCounts(OFFERS), "odd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"q is 0\.5"):
        distances.norm(0.5, OFFERS)
    assert L2(OFFERS, weights=np.ones(4)) == L2(OFFERS, weights=(1.0, 1.0, 1.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="floor is 2"):
        KL(OFFERS, floor=2.0)
