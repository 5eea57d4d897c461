"""What models with price levels answer: hand-made populations, brute force over rankings, and sentences."""

from itertools import pairwise, product
from pathlib import Path
from re import escape
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import rankstream as rs
from rankstream import plots
from rankstream.models.prices import arc, nearby_offers, own_items

LEVELS = rs.PriceLevels({"tea": [3, 3.5, 4], "cake": [4, 5]})
LABELS = (*LEVELS.labels, "nothing")
WORTH = {3.2: 0.3, 3.7: 0.5, 4.2: 0.2}
"""Customers who buy tea up to what it is worth to them, and their shares."""


def thresholds() -> rs.RankingModel:
    """Customers of tea alone: whatever costs at most what it is worth to them comes before leaving."""
    levels = rs.PriceLevels({"tea": [3, 3.5, 4]})
    rankings = []
    for worth in WORTH:
        wanted = sum(price <= worth for price in levels.levels["tea"])
        rankings.append((*levels.labels[:wanted], "nothing", *levels.labels[wanted:]))
    return rs.RankingModel((*levels.labels, "nothing"), rankings, list(WORTH.values()), no_choice_code=3)


def random_model(seed: int, n_rankings: int = 7) -> rs.RankingModel:
    """Rankings at random in which cheaper versions of an item come first."""
    random = np.random.default_rng(seed)
    rankings = []
    for _ in range(n_rankings):
        slots = random.permutation(["tea"] * 3 + ["cake"] * 2 + ["nothing"]).tolist()
        left = {item: [LEVELS.label(item, price) for price in LEVELS.levels[item]] for item in LEVELS.items}
        rankings.append(tuple("nothing" if item == "nothing" else left[item].pop(0) for item in slots))
    return rs.RankingModel(LABELS, rankings, random.dirichlet(np.ones(n_rankings)), no_choice_code=5)


def by_hand(model: rs.RankingModel, offer: dict[str, float | None]) -> dict[str, float]:
    """Every ranking takes the best of the offer."""
    shares = dict.fromkeys(offer, 0.0)
    labels = {item if price is None else LEVELS.label(item, price): item for item, price in offer.items()}
    for ranking, weight in zip(model.rankings, model.weights.tolist(), strict=True):
        shares[labels[next(label for label in ranking if label in labels)]] += weight
    return shares


def test_demand_of_customers_with_thresholds_is_known_by_hand() -> None:
    model = thresholds()
    known = {3.0: 1.0, 3.5: 0.7, 4.0: 0.2}
    assert model.demand("tea", others={"nothing": None}) == pytest.approx(known)
    for price, share in known.items():
        assert model.willingness("tea", price) == pytest.approx(share)
        assert model.predict({"tea": price, "nothing": None}) == pytest.approx({"tea": share, "nothing": 1 - share})
    assert model.willingness("tea", 3.6) == pytest.approx(0.8 * 0.7 + 0.2 * 0.2)
    found = model.elasticities({"tea": 3.0, "nothing": None})
    assert found.steps == {"tea": (3.0, 3.5)}
    assert found.own["tea"] == pytest.approx((-0.3 / 0.85) / (0.5 / 3.25))
    assert found.cross("tea") == {"nothing": pytest.approx((0.3 / 0.15) / (0.5 / 3.25))}
    assert model.elasticities({"tea": 4.0, "nothing": None}).steps == {"tea": (3.5, 4.0)}
    assert model.elasticities({"tea": 3.6, "nothing": None}).steps == {"tea": (3.5, 4.0)}


def test_an_exact_fit_gives_the_demand_of_the_population() -> None:
    levels, truth = rs.PriceLevels({"tea": [3, 3.5, 4]}), thresholds()
    offers = rs.Assortments([(label, "nothing") for label in levels.labels], order=levels.order)
    counts = rs.ChoiceCounts(offers, 1000 * truth.probabilities(offers))
    model = rs.estimate(offers, counts, method="nearest").model
    assert model.demand("tea", {"nothing": None}) == pytest.approx({3.0: 1.0, 3.5: 0.7, 4.0: 0.2}, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_predictions_are_those_of_the_rankings(seed: int) -> None:
    model = random_model(seed)
    for tea, cake in product((None, 3.0, 3.5, 4.0), (None, 4.0, 5.0)):
        prices: dict[str, float | None] = {"tea": tea, "cake": cake}
        offer = {item: price for item, price in prices.items() if price is not None} | {"nothing": None}
        assert model.predict(offer) == pytest.approx(by_hand(model, offer))
    for others in ({"nothing": None}, {"cake": 4.0, "nothing": None}, {"cake": 4.7, "nothing": None}):
        shares = list(model.demand("tea", others).values())
        assert all(one >= other - 1e-12 for one, other in pairwise(shares))


def test_between_levels_shares_are_multilinear() -> None:
    model = random_model(3)
    around = {
        (tea, cake): by_hand(model, {"tea": tea, "cake": cake, "nothing": None})
        for tea in (3.5, 4.0)
        for cake in (4.0, 5.0)
    }
    weights = {(3.5, 4.0): 0.6 * 0.25, (3.5, 5.0): 0.6 * 0.75, (4.0, 4.0): 0.4 * 0.25, (4.0, 5.0): 0.4 * 0.75}
    wanted = {item: sum(weights[at] * around[at][item] for at in around) for item in ("tea", "cake", "nothing")}
    found = model.predict({"tea": 3.7, "cake": 4.75, "nothing": None})
    assert found == pytest.approx(wanted)
    assert sum(found.values()) == pytest.approx(1.0)
    assert nearby_offers(LEVELS, LABELS, {"tea": 3.7, "cake": 5, "nothing": None}).between == ("tea",)


def test_elasticities_are_arcs_between_the_shares_of_two_levels() -> None:
    model = random_model(1)
    found = model.elasticities({"tea": 3.5, "cake": 5.0, "nothing": None})
    assert found.steps == {"tea": (3.5, 4.0), "cake": (4.0, 5.0)}
    first = by_hand(model, {"tea": 3.5, "cake": 4.0, "nothing": None})
    second = by_hand(model, {"tea": 3.5, "cake": 5.0, "nothing": None})
    for item, value in found.values["cake"].items():
        assert value == pytest.approx(arc((4.0, 5.0), (first[str(item)], second[str(item)])), nan_ok=True)
    assert all(value <= 0.0 for value in found.own.values())
    assert np.isnan(arc((1.0, 2.0), (0.0, 0.0)))


def test_too_many_items_between_levels_are_refused() -> None:
    levels = rs.PriceLevels({f"i{number}": [1, 2] for number in range(11)})
    model = rs.RankingModel(levels.labels, [levels.labels], [1.0])
    within = {f"i{number}": 1.5 if number < 10 else 1.0 for number in range(11)}
    assert sum(model.predict(within).values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="11 items are between two of their levels, more than 10"):
        model.predict(dict.fromkeys(within, 1.5))


def test_other_kinds_of_models_answer_too_and_files_keep_the_levels(tmp_path: Path) -> None:
    offers = rs.Assortments(
        [LEVELS.offer({"tea": tea, "cake": cake, "nothing": None}) for tea in (3, 3.5, 4) for cake in (4, 5)]
    )
    counts = rs.ChoiceCounts(offers, 1 + np.arange(offers.n_coordinates) % 5)
    for method in ("mnl", "max-entropy", "nearest"):
        model = rs.estimate(offers, counts, method=method).model
        assert model.price_levels == rs.PriceLevels.from_labels(offers.items)
        shares = model.predict(("tea @ 3.50", "cake @ 4.00", "nothing"))
        assert list(model.predict({"tea": 3.5, "cake": 4, "nothing": None}).values()) == list(shares.values())
    levels = rs.PriceLevels({"tea": [3, 3.5, 4]}, {"tea": [2.5, 3.2, 3.8, 4.5]})
    noted = thresholds().note(prices=levels.to_content())
    noted.save(tmp_path / "model.json")
    loaded = rs.load_model(tmp_path / "model.json")
    assert loaded.price_levels == levels
    assert loaded.predict({"tea": 2.6, "nothing": None}) == loaded.predict({"tea": 3, "nothing": None})
    assert loaded.note(prices="damaged").price_levels == thresholds().price_levels
    assert own_items(loaded) == ("tea", "nothing")


def test_models_without_prices_answer_as_before() -> None:
    model = rs.RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    assert model.price_levels is None
    assert model.predict({"tea": None, "pie": None}) == model.predict(["tea", "pie"]) == {"tea": 1.0, "pie": 0.0}
    for ask in (
        lambda: model.predict({"tea": 3.5}),
        lambda: model.demand("tea", {"pie": None}),
        lambda: model.elasticities({"tea": 3}),
        lambda: model.willingness("tea", 3, "pie"),
    ):
        with pytest.raises(ValueError, match="The model has no prices: give offers as lists of items"):
            ask()


BAD: list[tuple[str, tuple[Any, ...], str]] = [
    ("predict", ({"tea": 2.9, "nothing": None},), "The price 2.9 of 'tea' is outside its levels, which cover 3 to 4"),
    ("predict", ({"tea": None, "nothing": None},), "The price of 'tea' is missing"),
    ("predict", ({"tea": float("nan")},), "The price of 'tea' is nan"),
    ("predict", ({"tea": -3},), "The price of 'tea' is -3"),
    ("predict", ({"tea": "3"},), "The price of 'tea' is '3', which is not a number"),
    ("predict", ({"tea": 3, "nothing": 1},), "The item 'nothing' has a price, but no levels"),
    ("predict", ({"tea": 3, "rum": None},), "The model has no item 'rum': its items are 'tea', 'nothing'"),
    ("predict", ({},), "The offer is empty"),
    ("demand", ("rum", {"nothing": None}), "The item 'rum' has no price levels in this model"),
    ("demand", ("nothing", {"tea": 3}), "The item 'nothing' has no price levels"),
    ("demand", ("tea", {"tea": 3, "nothing": None}), "The other items contain 'tea' itself"),
    ("demand", ("tea", {}), "The other items are {}: give their prices"),
    ("demand", ("tea", ["nothing"]), "give their prices"),
    ("willingness", ("nothing", 3), "is the no-purchase option: choose an item that is sold"),
    ("willingness", ("tea", 9), "The price 9 of 'tea' is outside its levels"),
    ("willingness", ("rum", 3), "The item 'rum' has no price levels"),
    ("elasticities", ({"nothing": None},), "No item of the offer has two price levels"),
]


@pytest.mark.parametrize(("name", "words", "said"), BAD)
def test_what_cannot_be_answered_is_one_sentence(name: str, words: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=escape(said)):
        getattr(thresholds(), name)(*words)


def test_willingness_needs_an_item_for_leaving() -> None:
    model = thresholds()
    other = rs.RankingModel.from_codes(model.items, model.orders, model.weights)
    with pytest.raises(ValueError, match="The model has no no-purchase option: set no_choice"):
        other.willingness("tea", 3.5)
    assert other.willingness("tea", 3.5, no_choice="nothing") == pytest.approx(0.7)


@pytest.fixture(scope="module")
def refits() -> rs.Bootstrap:
    offers = rs.Assortments(
        [LEVELS.offer({"tea": tea, "cake": cake, "nothing": None}) for tea in (3, 3.5, 4) for cake in (4, 5)],
        order=LEVELS.order,
    )
    shares = random_model(2, 40).probabilities(offers)
    return rs.Bootstrap(rs.ChoiceCounts(offers, np.round(400 * shares)), "nearest", replicates=10)


def test_answers_have_intervals(refits: rs.Bootstrap) -> None:
    others: dict[Any, Any] = {"cake": 4.0, "nothing": None}
    model: Any = refits.model
    curve = refits.demand("tea", others)
    assert {price: found.share for price, found in curve.items()} == pytest.approx(model.demand("tea", others))
    assert all(0.0 <= found.low < found.share < found.high <= 1.0 for found in curve.values())
    level, between = (refits.predict({"tea": price, **others}) for price in (3.5, 3.7))
    assert level["tea"] == curve[3.5]
    assert level == dict(zip(level, refits.predict(("tea @ 3.50", "cake @ 4.00", "nothing")).values(), strict=True))
    assert between["tea"].share == pytest.approx(model.predict({"tea": 3.7, **others})["tea"])
    ends = [refits.demand("tea", others)[price] for price in (3.5, 4.0)]
    for place in range(3):
        assert between["tea"][place] == pytest.approx(0.6 * ends[0][place] + 0.4 * ends[1][place])
    wanted = refits.willingness("tea", 3.0)
    assert wanted == refits.predict({"tea": 3.0, "nothing": None})["tea"]
    found = refits.elasticities({"tea": 3.0, **others})
    assert found.values == model.elasticities({"tea": 3.0, **others}).values
    assert found.intervals is not None
    low, high = found.intervals["tea"]["tea"]
    assert low < found.own["tea"] < high
    for ask in (lambda: refits.predict({"tea": 9, "nothing": None}), lambda: refits.demand("rum", others)):
        with pytest.raises(ValueError, match="levels"):
            ask()


def test_pictures_of_demand_show_levels_and_intervals(refits: rs.Bootstrap) -> None:
    others = {"nothing": None}
    model: Any = refits.model
    axes = plots.demand({"tea": model.demand("tea", others)}, Figure().subplots())
    (line,) = axes.get_lines()
    assert list(np.asarray(line.get_xdata())) == [3.0, 3.5, 4.0]
    assert np.asarray(line.get_ydata()) == pytest.approx(
        [100 * share for share in model.demand("tea", others).values()]
    )
    assert axes.get_title() == "Demand for tea by its price"
    curves = {item: refits.demand(item, others) for item in ("tea", "cake")}
    axes = plots.demand(curves, Figure().subplots())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["tea", "cake"]  # type: ignore[union-attr]
    assert len(axes.collections) == 4  # a band and bars for each
