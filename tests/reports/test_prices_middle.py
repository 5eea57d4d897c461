"""Answers about everything of models with prices: an item is on offer at one level, the usual one, never at two."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream import PriceLevels, plots
from rankstream.models.answers import favourites, most_chosen
from rankstream.models.prices import everything, usual_prices
from rankstream.reports.blocks import Chart, TableBlock
from rankstream.reports.sections import demand_section, substitution_section, types_section
from shell import run

LEVELS = PriceLevels({"tea": [3, 3.5, 4], "cake": [4, 5], "pie": [2]})
ITEMS = (*LEVELS.labels, "nothing")
MIDDLE = ("tea @ 3.50", "cake @ 5.00", "pie @ 2.00", "nothing")


def market(seed: int = 0, rankings: int = 30) -> rs.RankingModel:
    """Random rankings that keep the order of prices."""
    random = np.random.default_rng(seed)
    places = {label: place for place, label in enumerate(ITEMS)}
    orders = []
    for _ in range(rankings):
        order = random.permutation(len(ITEMS)).tolist()
        for item in LEVELS.items:
            own = [places[label] for label in LEVELS.labels if LEVELS.of(label)[0] == item]
            for place, code in zip(sorted(order.index(code) for code in own), own, strict=True):
                order[place] = code
        orders.append([ITEMS[code] for code in order])
    return rs.RankingModel(ITEMS, orders, random.dirichlet(np.ones(rankings)), no_choice_code=len(ITEMS) - 1)


def first_two_by_hand(model: rs.RankingModel) -> dict[tuple[str, ...], float]:
    """What customers take first and second where everything is at its middle price."""
    found: dict[tuple[str, ...], float] = {}
    for ranking, weight in zip(model.rankings, model.weights.tolist(), strict=True):
        wanted = [str(label) for label in ranking if label in MIDDLE][:2]
        key = tuple(wanted[: wanted.index("nothing")] if "nothing" in wanted else wanted)
        found[key] = found.get(key, 0.0) + weight
    return found


@pytest.mark.parametrize("seed", range(4))
def test_types_and_substitution_are_at_usual_prices(seed: int) -> None:
    model = market(seed)
    assert usual_prices(model) == {"tea": 3.5, "cake": 5.0, "pie": 2.0, "nothing": None}
    assert everything(model) == MIDDLE == most_chosen(model, 100)
    assert set(most_chosen(model, 2)) < set(MIDDLE)
    moves = model.substitution()
    assert moves.items == MIDDLE
    by_hand = first_two_by_hand(model)
    assert favourites(moves, "nothing") == pytest.approx({key: share for key, share in by_hand.items() if share > 1e-9})
    first: dict[str, float] = {}
    for segment in model.segments():
        assert set(segment.ranking) <= set(MIDDLE)
        key = str(segment.ranking[0]) if segment.ranking else "nothing"
        first[key] = first.get(key, 0.0) + segment.share
    shares = model.predict(MIDDLE)
    assert {item: first.get(str(item), 0.0) for item in shares} == pytest.approx(shares)
    whole = model.segments(offer=model.items)
    assert {item for segment in whole for item in segment.ranking} > set(MIDDLE[:3])
    assert sum(segment.share for segment in model.segments()) == pytest.approx(1.0)


def test_the_usual_price_is_the_most_frequent_one_and_is_saved_with_the_model(tmp_path: Path) -> None:
    """A regular price and a promotion: the promotion is the cheaper of two levels, and rare."""
    offers = [
        ("tea @ 3.00", "pie @ 2.00", "nothing"),
        ("tea @ 4.00", "pie @ 1.00", "nothing"),
        ("tea @ 4.00", "nothing"),
    ]
    levels = PriceLevels({"tea": [3, 4], "pie": [1, 2]})
    counts = rs.ChoiceCounts(rs.Assortments(offers, order=levels.order), [9, 8, 7, 5, 6, 9, 60, 40])
    for fit in (rs.estimate(counts, method="mnl-price"), rs.fit_within(counts, method="nearest")):
        fit.model.save(tmp_path / "model.json")
        model = rs.load_model(tmp_path / "model.json")
        assert usual_prices(model) == {"tea": 4.0, "pie": 2.0, "nothing": None}  # pie: 24 customers against 20
    more = rs.ChoiceCounts(counts.assortments, [90, 80, 70, 95, 96, 99, 0, 0])
    assert usual_prices(rs.estimate(more, method="mnl-price").model)["pie"] == 1.0
    model.note(usual_prices=[["tea", 3.0], ["pie", 1.5], [[], 3], 7])  # files may say anything
    assert usual_prices(model) == {"tea": 3.0, "pie": 2.0, "nothing": None}
    model.note(usual_prices="tea")
    assert usual_prices(model)["tea"] == 4.0


def test_a_live_model_remembers_usual_prices() -> None:
    live = rs.Live(prices=PriceLevels({"tea": [3, 4]}))
    live.observe(
        [rs.Record(("tea @ 3.00", "nothing"), "nothing", 30), rs.Record(("tea @ 4.00", "nothing"), "nothing", 9)]
    )
    assert usual_prices(live.model) == {"tea": 3.0, "nothing": None}


def test_changes_of_types_are_at_usual_prices() -> None:
    changes = rs.favourite_changes(market(1), market(2), "nothing", least=0.0)
    every = (*changes.appeared, *changes.vanished, *changes.grew, *changes.shrank)
    assert every
    assert {item for one in every for item in one.ranking} <= set(MIDDLE)


def test_sections_and_pictures_say_at_which_prices_they_are() -> None:
    model = market(3)
    said = "All prices are the usual (most frequent) ones."
    moves = model.substitution()
    types = types_section(model, favourites(moves, "nothing"))
    assert said in types.sentences
    assert said in substitution_section(moves, model=model).sentences
    assert len(types.parts) == 1
    plain = rs.RankingModel(["tea", "no"], [("tea", "no")], [1.0], no_choice_code=1)
    assert len(types_section(plain, favourites(plain.substitution(), "no")).sentences) == 1
    from matplotlib.figure import Figure

    from rankstream.cli.plot import draw_substitution

    assert "at usual prices" in plots.segments(model, Figure().subplots()).get_title()
    assert "at usual prices" not in plots.segments(plain, Figure().subplots()).get_title()
    titles = [draw_substitution(one).axes[0].get_title() for one in (model, plain)]
    assert titles == ["Where the buyers go, at usual prices", "Where the buyers go"]


@pytest.mark.parametrize(("items", "drawn", "listed"), [(3, 3, 3), (8, 8, 8), (9, 8, 9), (40, 8, 30)])
def test_of_many_demand_curves_the_most_chosen_are_shown(items: int, drawn: int, listed: int) -> None:
    curves: dict[Any, dict[float, float]] = {
        f"item {place}": {1.0: (place + 1) / 50, 2.0: (place + 1) / 100} for place in range(items)
    }
    section = demand_section(curves)
    chart, elasticity = section.parts
    assert isinstance(chart, Chart)
    assert isinstance(elasticity, TableBlock)
    assert {row[1:] for row in elasticity.rows} == {("1.00 to 2.00", "-1.00", "1.00")}  # half at twice the price
    assert len(chart.table.rows) == 2 * listed
    assert f"item {items - 1}" in {row[0] for row in chart.table.rows}
    assert (f"The chart shows the {drawn} most chosen of {items} items" in " ".join(section.sentences)) == (
        drawn < items
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, model = tmp_path_factory.mktemp("shop"), market(7)
    rows = ["offered,chosen,count"]
    for tea in (3, 3.5, 4):
        for cake in (4, 5):
            offer = {"tea": tea, "cake": cake, "pie": 2, "nothing": None}
            text = f"tea@{tea};cake@{cake};pie@2;nothing"
            many = 700 if (tea, cake) == (3.5, 4) else 500
            rows += [f"{text},{item},{round(many * share)}" for item, share in model.predict(offer).items()]
    (folder / "shop.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("method", ["mnl-price", "latent-class-price"])
def test_logits_with_a_price_are_fitted_at_the_shell(shop: Path, method: str) -> None:
    words = ("fit", "shop.csv", "--price-columns", "offered", "--method", method, "-o", f"{method}.json")
    made = run(*words, "--json", cwd=shop)
    assert made.returncode == 0, made.stderr
    assert (json.loads(made.stdout)["method"], json.loads(made.stdout)["kind"]) == (method, "priced-logit")
    model = rs.load_model(shop / f"{method}.json")
    curve = model.demand("tea", {"cake": 4.0, "pie": 2.0, "nothing": None})
    assert all(dearer < cheaper for cheaper, dearer in pairwise(curve.values()))
    shown = run("show", f"{method}.json", "--data", "shop.csv", "--replicates", "2", cwd=shop)
    assert f"Fitted by {method}, seed 0" in shown.stdout
    assert "The largest customer types at usual prices by their first two choices" in shown.stdout
    (shop / "plain.csv").write_text("offered,chosen\ntea;no,tea\ntea;no,no\n")
    refused = run("fit", "plain.csv", "--method", method, "-o", "x.json", cwd=shop)
    assert refused.returncode == 2
    assert "No item has a price in its name" in refused.stderr


def test_a_report_shows_a_priced_model_at_usual_prices(shop: Path) -> None:
    fit = ("fit", "shop.csv", "--price-columns", "offered", "--method", "nearest", "-o", "near.json")
    assert run(*fit, cwd=shop).returncode == 0
    words = ("report", "near.json", "--data", "shop.csv", "--replicates", "2", "-o", "near.html")
    found = run(*words, "--json", cwd=shop)
    assert found.returncode == 0, found.stderr
    page = (shop / "near.html").read_text()
    assert page.count("4 items at price levels") == 1
    assert page.count("All prices are the usual (most frequent) ones.") == 2
    types = json.loads(found.stdout)["model"]["segments"]
    assert {name for one in types for name in one["ranking"]} <= {"cake @ 4.00", "pie @ 2.00", "tea @ 3.50", "nothing"}
