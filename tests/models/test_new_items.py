"""Items that were never offered: the extended model against all rankings, and what is said of them."""

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import naive
import rankstream as rs
from rankstream import Assortments, EntropyModel
from rankstream._core.types import Vec
from rankstream.data.attributes import Attributes
from rankstream.decide import best_offer
from rankstream.estimation.misfit import Misfit
from rankstream.models.answers import prediction_to_json
from rankstream.models.entropy.new_items import WorthRegression
from rankstream.models.entropy.ranking_laws import plackett_luce
from strategies import compiled_only

ITEMS = ("tea", "pie", "cake", "rum", "nothing")
SIZES = {"tea": 1.0, "pie": 2.0, "cake": 4.0, "rum": 3.0}
NEW = {"gin": {"size": 5.0}, "bun": {"size": 1.5}}
OFFERS = (("tea", "pie", "nothing"), ("tea", "cake", "rum", "nothing"), ("pie", "rum", "nothing"), ("cake", "nothing"))


def a_model(seed: int) -> EntropyModel:
    random, offers = np.random.default_rng(seed), Assortments(OFFERS, ITEMS)
    prior = plackett_luce(ITEMS, np.exp(random.normal(size=(3, 5))), random.dirichlet(np.ones(3)))
    table = Attributes(tuple(SIZES), {"size": list(SIZES.values())})
    return EntropyModel(prior, offers, 2.0 * random.normal(size=offers.n_coordinates), table)


def every_offer(items: tuple[Any, ...]) -> Assortments:
    return Assortments([s for size in range(1, len(items) + 1) for s in combinations(items, size)], items)


def worths(model: EntropyModel) -> Vec:
    """What the classes say of old and of new items, number by number."""
    sizes = np.array(list(SIZES.values()))
    coded = (sizes - sizes.mean()) / sizes.std()
    worth, shares = model.prior.attraction[:, :4], model.prior.class_weights
    regression = WorthRegression(worth, shares, coded[:, np.newaxis])
    slopes, levels = regression.mean_part_worths, regression.logs.mean(axis=1)
    rows = []
    for row, level, slope in zip(model.prior.attraction, levels, slopes[:, 0], strict=True):
        new = [np.exp(level + slope * (one["size"] - sizes.mean()) / sizes.std()) for one in NEW.values()]
        rows.append([*row, *new])
    return np.array(rows)


def conditional(model: EntropyModel) -> dict[tuple[int, ...], float]:
    """The law of all rankings of old and new items: that of the old ones, and new ones placed by the base law."""
    offers, weights, table = model.assortments, model.prior.class_weights, worths(model)
    whole = {r: naive.prior_probability(model.prior, list(r)) for r in permutations(range(5))}
    tilted = {r: g * np.exp(-model.duals @ naive.vertex(offers, list(r))) for r, g in whole.items()}
    total = sum(tilted.values())
    law = {}
    for ranking in permutations(range(7)):
        old = tuple(item for item in ranking if item < 5)
        chances = [naive.plackett_luce_probability(row / row.sum(), list(ranking)) for row in table]
        law[ranking] = float(tilted[old] / total * (weights @ chances) / whole[old])
    return law


@pytest.mark.parametrize("seed", [0, 1])
def test_new_items_are_placed_by_the_base_law_given_all_choices(seed: int) -> None:
    model = a_model(seed)
    wide, law = model.with_items(NEW), conditional(model)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    offers = every_offer(wide.items)
    shares = np.zeros(offers.n_coordinates)
    for ranking, chance in law.items():
        shares += chance * offers.vertex(ranking)
    assert wide.probabilities(offers) == pytest.approx(shares, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_other_items_stays_the_same(seed: int) -> None:
    model, old = a_model(seed), every_offer(ITEMS)
    wide = model.with_items(NEW)
    assert wide.items == (*ITEMS, "gin", "bun")
    assert wide.no_choice == model.no_choice == "nothing"
    assert wide.probabilities(old) == pytest.approx(model.probabilities(old), abs=1e-9)
    programs = [one.program() for one in (model, wide)]
    before, after = (lattice.evaluate(duals)[0] for lattice, duals in programs)
    assert after == pytest.approx(before, abs=1e-10)  # the same normaliser


@pytest.mark.parametrize("seed", range(3))
def test_an_extended_model_is_regular(seed: int) -> None:
    wide = a_model(seed).with_items(NEW)
    shares = {offer: wide.predict(offer, forced=True) for offer in every_offer(wide.items).offers}
    for offer, predicted in shares.items():
        for more in set(wide.items) - set(offer):
            larger = tuple(item for item in wide.items if item in {*offer, more})
            assert all(shares[larger][item] <= share + 1e-9 for item, share in predicted.items())


def test_items_can_be_added_one_after_the_other_and_survive_a_file(tmp_path: Path) -> None:
    model = a_model(5)
    wide, offers = model.with_items(NEW), every_offer((*ITEMS, *NEW))
    steps = model.with_items({"gin": NEW["gin"]}).with_items({"bun": NEW["bun"]})
    assert steps.probabilities(offers) == pytest.approx(wide.probabilities(offers), abs=1e-9)
    model.save(tmp_path / "model.json")
    wide.save(tmp_path / "wide.json")
    again = rs.load_model(tmp_path / "model.json").with_items(NEW)
    loaded = rs.load_model(tmp_path / "wide.json")
    for other in (again, loaded):
        assert other.probabilities(offers) == pytest.approx(wide.probabilities(offers), abs=1e-9)
        assert other.never_offered == ("gin", "bun")
        assert other.about["item_notes"] == wide.about["item_notes"]
    assert loaded.with_items({"jam": {"size": 2.0}}).never_offered == ("gin", "bun", "jam")


def test_a_new_item_with_a_row_in_the_table_is_no_evidence_about_others() -> None:
    model = a_model(5)
    table = Attributes((*SIZES, *NEW), {"size": [*SIZES.values(), *(row["size"] for row in NEW.values())]})
    known = EntropyModel(model.prior, model.assortments, model.duals, table)
    steps = known.with_items({"gin": NEW["gin"]}).with_items({"bun": NEW["bun"]})
    offers = every_offer((*ITEMS, *NEW))
    assert steps.probabilities(offers) == pytest.approx(known.with_items(NEW).probabilities(offers), abs=1e-9)
    assert steps.importance()["size"] == pytest.approx(known.importance()["size"])


def test_answers_say_what_was_never_offered() -> None:
    model = a_model(0)
    wide = model.with_items({"gin": {"size": 5.0}})
    content = prediction_to_json(wide, ("gin", "nothing"), wide.predict(("gin", "nothing")))
    assert content["warnings"] == ["Never offered, so predicted by their attributes alone: gin."]
    assert prediction_to_json(model, ("tea",), model.predict(("tea",)))["warnings"] == []
    assert repr(wide) == "EntropyModel(6 items, 1 of them never offered, fitted to 4 offers)"
    assert repr(model) == "EntropyModel(5 items, fitted to 4 offers)"


def test_levels_that_no_item_has_are_named() -> None:
    table = Attributes(("tea", "pie", "cake", "rum"), {"brand": ["A", "A", "B", "B"]})
    model = a_model(0)
    wide = EntropyModel(model.prior, model.assortments, model.duals, table).with_items({"gin": {"brand": "Z"}})
    assert wide.about["item_notes"][1] == "No item of the fit has the brand 'Z' of 'gin': it counts as average."
    average = np.exp(np.log(model.prior.attraction[:, :4]).mean(axis=1))
    assert wide.prior.attraction[:, 5] / wide.prior.attraction[:, 0] == pytest.approx(
        average / model.prior.attraction[:, 0]
    )


def test_errors_of_new_items() -> None:
    model = a_model(0)
    with pytest.raises(ValueError, match=r"already has the item 'tea': give new items only"):
        model.with_items({"tea": {"size": 1.0}})
    with pytest.raises(ValueError, match=r"cannot take new items: fit it by maximum entropy with attributes"):
        EntropyModel(model.prior, model.assortments, model.duals).with_items(NEW)
    with pytest.raises(ValueError, match=r"cannot take new items"):
        model.to_rankings(10).with_items(NEW)
    counts = rs.ChoiceCounts(model.assortments, np.ones(model.duals.size))
    with pytest.raises(ValueError, match=r"has items that were never offered: use Bootstrap"):
        rs.Bootstrap(counts, model=model.with_items(NEW), replicates=2)


def dense_prediction(logs: Vec, rows: Vec, new: Vec) -> tuple[float, float]:
    """Mean and variance for a new item, ridge by ridge, from the dense covariance of all items and a free level."""
    size, answers = len(logs), []
    ones, contrasts = np.ones(size), np.linalg.svd(np.ones((1, size)))[2][1:]
    for ridge in (*np.geomspace(0.1, 1000.0, 9), 1e9):
        covariance, shared = np.eye(size) + rows @ rows.T / ridge, rows @ new / ridge
        apart, inverse = contrasts @ covariance @ contrasts.T, np.linalg.inv(covariance)
        squares = float((contrasts @ logs) @ np.linalg.solve(apart, contrasts @ logs)) + 0.02
        height = -0.5 * np.linalg.slogdet(apart)[1] - 0.5 * (size - 0.9) * np.log(squares)
        level, left = ones @ inverse @ logs / (ones @ inverse @ ones), 1.0 - shared @ inverse @ ones
        spread = 1.0 + new @ new / ridge - shared @ inverse @ shared + left**2 / (ones @ inverse @ ones)
        mean = level + shared @ inverse @ (logs - level)
        answers.append((height, mean, squares / (size - 0.9) * spread))
    heights, means, variances = np.array(answers).T
    chances = np.exp(heights - heights.max()) * np.array(
        [*[1.0] * 9, 10.0]
    )  # about half in advance on the average item
    chances /= chances.sum()
    mean = float(chances @ means)
    return mean, float(chances @ (variances + (means - mean) ** 2))


@pytest.mark.parametrize("slope", [1.0, 0.0])
def test_a_new_item_is_averaged_over_ridges_by_their_marginal_likelihoods(slope: float) -> None:
    random = np.random.default_rng(3)
    rows = random.normal(size=(7, 2))
    rows -= rows.mean(axis=0)
    logs, new = rows @ [slope, -slope] + 0.3 * random.normal(size=7), np.array([[0.5, -1.0]])
    found = WorthRegression(np.exp(logs)[np.newaxis], np.ones(1), rows)
    mean, variance = dense_prediction(logs, rows, new[0])
    assert found.predict(new)[0, 0] == pytest.approx(mean, abs=1e-6)
    drawn = np.array([found.predict(new, random)[0, 0] for _ in range(4000)])
    t_variance = found.freedom / (found.freedom - 2.0)
    assert drawn.mean() == pytest.approx(mean, abs=0.05)
    assert drawn.var() == pytest.approx(variance * t_variance, rel=0.15)
    assert (abs(mean - logs.mean()) > 0.8) == (slope > 0)


def test_effects_that_all_classes_share_do_not_blur_how_classes_differ() -> None:
    random = np.random.default_rng(4)
    rows = random.normal(size=(12, 2))
    rows -= rows.mean(axis=0)
    part_worths, shares = random.normal(size=(3, 2)), np.array([0.5, 0.3, 0.2])
    logs = part_worths @ rows.T + random.normal(size=12)
    new = random.normal(size=(1, 2))
    found = WorthRegression(np.exp(logs - logs.max()), shares, rows).predict(new)[:, 0]
    differences, truth = found - shares @ found, part_worths @ new[0] - shares @ part_worths @ new[0]
    levels = logs.mean(axis=1) - shares @ logs.mean(axis=1)
    assert differences - levels == pytest.approx(truth, abs=0.05)


def test_errors_of_a_new_item_go_together_as_those_of_the_classes_do() -> None:
    random = np.random.default_rng(5)
    rows = random.normal(size=(40, 1))
    rows -= rows.mean(axis=0)
    effects = random.normal(size=(2, 40))
    logs = np.array([effects[0], effects[0], effects[1]])  # two classes alike, and one of its own
    found = WorthRegression(np.exp(logs), np.array([0.25, 0.25, 0.5]), rows)
    drawn = np.array([found.predict(np.ones((1, 1)), random)[:, 0] for _ in range(2000)])
    together = np.corrcoef(drawn.T)
    assert together[0, 1] == pytest.approx(1.0)
    assert abs(together[0, 2]) < 0.3


def explained_model(noise: float) -> EntropyModel:
    """Twelve items whose worths depend on their size, not on their colour, in two classes."""
    random, items = np.random.default_rng(1), tuple(f"item {number}" for number in range(12))
    sizes = np.arange(12.0)
    columns: dict[str, Any] = {"size": sizes.tolist(), "colour": list("rgb" * 4)}
    utility = np.outer([0.3, 0.6], sizes) + noise * random.normal(size=12)
    prior = plackett_luce((*items, "nothing"), np.hstack([np.exp(utility), np.ones((2, 1))]), [0.4, 0.6])
    offers = Assortments([items, (*items, "nothing")])
    return EntropyModel(prior, offers, np.zeros(offers.n_coordinates), Attributes(items, columns))


def test_importance_is_the_explained_share_of_the_variance_between_items() -> None:
    sharp, blurred = (explained_model(noise).importance() for noise in (0.01, 3.0))
    assert sharp["size"].share == pytest.approx(1.0, abs=0.05)
    assert sharp["size"].high - sharp["size"].low < 0.2
    assert sharp["colour"].low < 0.0 < sharp["colour"].high < 0.1
    assert blurred["size"].high - blurred["size"].low > 0.3
    assert sum(part.share for part in blurred.values()) < 0.9


def test_importance_is_that_of_worths_written_out() -> None:
    model = explained_model(1.0)
    assert model.attributes is not None
    design = model.attributes.matrix
    found = WorthRegression(model.prior.attraction[:, :12], model.prior.class_weights, design)
    shared = total = 0.0
    for share, row, part_worths in zip((0.4, 0.6), found.logs, found.mean_part_worths, strict=True):
        for item in range(12):
            deviation = row[item] - row.mean()
            shared += share * part_worths[0] * design[item, 0] * deviation
            total += share * deviation**2
    assert model.importance()["size"].share == pytest.approx(shared / total, abs=0.02)
    assert model.importance(seed=1) == model.importance(seed=1)
    narrow, wide = (model.importance(level)["size"] for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_importance_needs_attributes() -> None:
    model = a_model(0)
    with pytest.raises(ValueError, match="has no attributes: fit it by maximum entropy"):
        EntropyModel(model.prior, model.assortments, model.duals).importance()
    with pytest.raises(ValueError, match="has no attributes: fit it by maximum entropy"):
        model.to_rankings(10).importance()


def test_a_chart_of_importance_has_a_bar_for_each_attribute() -> None:
    found = explained_model(0.5).importance()
    axes = rs.plots.importance(found, Figure().subplots())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["colour", "size"]
    bars = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == pytest.approx([found["colour"].share, found["size"].share])


def test_an_interval_of_a_new_item_is_as_wide_as_its_attributes_explain_little() -> None:
    own, sizes = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 2.0, 4.0, 3.0])
    widths = []
    for effect in (0.0, 1.2):
        worth = np.exp(0.5 * sizes + effect * own)
        prior = plackett_luce(ITEMS, [*worth, 3.0])
        model = EntropyModel(prior, Assortments(OFFERS, ITEMS), np.zeros(12), a_model(0).attributes)
        counts = rs.ChoiceCounts(model.assortments, np.round(1000.0 * model.probabilities(model.assortments)))
        many = rs.Bootstrap(counts, rs.methods.MaxEntropy(prior=prior, trust=None), 20, model=model)
        wide = many.with_items(NEW)
        assert wide.predict(("tea", "nothing"))["tea"] == pytest.approx(many.predict(("tea", "nothing"))["tea"])
        gin = wide.predict(("gin", "nothing"))["gin"]
        assert gin.share == model.with_items(NEW).predict(("gin", "nothing"))["gin"]
        assert wide.model.never_offered == ("gin", "bun")  # type: ignore[attr-defined]
        bun = wide.predict(("bun", "nothing"))["bun"]
        widths.append(bun.high - bun.low)
    assert widths[1] > 1.5 * widths[0]


def test_errors_that_new_items_were_drawn_with_are_not_stretched() -> None:
    model = a_model(2)
    counts = rs.ChoiceCounts(model.assortments, np.round(1000.0 * model.probabilities(model.assortments)))
    many = rs.Bootstrap(counts, rs.methods.MaxEntropy(prior=model.prior, trust=None), 5, model=model)
    many.misfit = Misfit(unseen=0.02, scale=100.0)
    wide, offers = many.with_items(NEW), Assortments([("tea", "rum"), ("tea", "gin")], (*ITEMS, *NEW))
    share, error, shift = wide.spread(offers)
    stretch = np.array([2.0, 2.0, 1.0, 1.0])  # 1 + half of the misfit times its scale
    expected = stretch * (error**2 + shift**2) + 0.01 * share * (1.0 - share)
    assert wide.errors(offers) ** 2 == pytest.approx(expected)


@compiled_only
@pytest.mark.parametrize("seed", range(3))
def test_the_best_offer_with_candidates_is_that_of_brute_force(seed: int) -> None:
    wide = a_model(seed).with_items(NEW)
    margins = dict(zip(wide.items, (1.0, 2.0, 1.5, 3.0, 0.0, 4.0, 2.5), strict=True))
    others = [item for item in wide.items if item != "nothing"]
    values: dict[tuple[Any, ...], float] = {}
    for size in range(4):
        for offer in combinations(others, size):
            if not {"gin", "bun"} <= set(offer):  # at most one of the candidates
                shares = wide.predict((*offer, "nothing"))
                values[offer] = sum(margins[item] * share for item, share in shares.items())
    found = best_offer(wide, margins, at_most=3, excludes=[("gin", "bun")])
    assert found.value == pytest.approx(max(values.values()), abs=1e-9)
    assert found.offer == max(values, key=lambda offer: values[offer])
    assert found.proven


@compiled_only
def test_attributes_are_a_table_or_what_such_a_table_is_read_from(tmp_path: Path) -> None:
    counts = rs.ChoiceCounts(Assortments(OFFERS, ITEMS), [5.0, 3, 2, 4, 1, 2, 3, 2, 2, 1, 6, 1])
    rows = {item: {"size": size} for item, size in SIZES.items()}
    file = tmp_path / "items.csv"
    file.write_text("item,size\n" + "".join(f"{item},{size}\n" for item, size in SIZES.items()))
    known, *others = (rs.estimate(counts, attributes=given).model for given in (rs.read_attributes(rows), rows, file))
    for model in others:
        assert model.with_items(NEW).predict(("gin", "tea")) == known.with_items(NEW).predict(("gin", "tea"))
