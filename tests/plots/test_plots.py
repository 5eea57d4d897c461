from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import rankstream as rs
from rankstream import plots
from rankstream.cli.decide import draw
from rankstream.estimation.methods import Nearest, PrimalDual

pytestmark = pytest.mark.quick


def test_convergence_uses_observations_where_they_are_known() -> None:
    market = rs.simulate.market(0)
    dynamic = rs.estimate(market.assortments, market.stream(), method=PrimalDual(tolerance_mae=0.01, certify_every=5))
    static = rs.estimate(market.assortments, market.frequencies(), method=PrimalDual(tolerance_mae=0.01))
    for fit, label in ((dynamic, "observations"), (static, "rounds")):
        axes = plots.convergence(fit, Figure().subplots())
        assert axes.get_xlabel() == label
        error, gap = axes.get_lines()
        assert len(error.get_xdata()) == fit.rounds  # type: ignore[arg-type]
        assert len(gap.get_xdata()) == np.isfinite(fit.history.gap).sum()  # type: ignore[arg-type]


def test_predicted_against_true_states_the_error() -> None:
    axes = plots.predicted_against_true(np.array([0.25, 0.75]), np.array([0.5, 0.5]), Figure().subplots())
    assert "0.250" in axes.get_title()
    assert axes.get_xlim()[1] == pytest.approx(0.7875)


def test_shares_over_time_have_dots_for_data_and_lines_for_models() -> None:
    offers = rs.Assortments([("tea", "pie"), ("tea", "cake")])
    periods = [rs.ChoiceCounts(offers, tallies) for tallies in ([30, 70, 1, 1], [0, 0, 1, 1], [60, 40, 1, 1])]
    axes = plots.shares_over_time(periods, ("pie", "tea"), Figure().subplots())
    pie, tea = (line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_marker() == "o")  # type: ignore[arg-type]
    assert pie.get_ydata() == pytest.approx([0.7, 0.4])
    assert tea.get_xdata() == pytest.approx([1, 3])
    models = [rs.estimate(offers, period, method=PrimalDual(tolerance_mae=0.01)).model for period in periods]
    axes = plots.shares_over_time(periods, ("tea", "pie"), Figure().subplots(), times=[10, 20, 30], models=models)
    line = next(line for line in axes.get_lines() if len(line.get_xdata()) == 3)  # type: ignore[arg-type]
    assert line.get_xdata() == pytest.approx([10, 20, 30])
    assert np.asarray(line.get_ydata())[[0, 2]] == pytest.approx([0.3, 0.6], abs=0.02)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["tea", "pie"]  # type: ignore[union-attr]
    assert axes.get_xlabel() == "time"
    many = rs.Assortments([range(12)])
    axes = plots.shares_over_time([rs.ChoiceCounts(many, np.ones(12))], range(12), Figure().subplots())
    assert len(axes.get_legend().get_texts()) == 12  # type: ignore[union-attr]


def market_model(n_items: int) -> tuple[rs.RankingModel, rs.ChoiceCounts]:
    market = rs.simulate.market(1, n_items=n_items - 1, n_offers=2 if n_items == 3 else 20, n_test=1)
    counts = next(market.stream(first=2000))
    fit = rs.estimate(counts.assortments, counts, method=Nearest(gap=3e-3, max_rounds=50))
    return fit.model, counts


@pytest.mark.parametrize("n_items", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_pictures_of_models_are_drawn_without_warnings(n_items: int) -> None:
    model, counts = market_model(n_items)
    pictures: list[Callable[[Axes], Axes]] = [
        lambda axes: plots.segments(model, axes),
        lambda axes: plots.substitution(model, axes),
        lambda axes: plots.predicted_against_observed(model, counts, axes),
        lambda axes: plots.shares_over_time([counts], counts.assortments.offers[0], axes),
    ]
    for picture in pictures:
        figure = Figure(figsize=(9, 8), layout="constrained")
        axes = figure.subplots()
        assert picture(axes) is axes
        figure.draw_without_rendering()


def test_customer_types_are_merged_by_their_favourites() -> None:
    rankings = [("tea", "pie", "rum", "no"), ("tea", "pie", "no", "rum"), ("rum", "no", "tea", "pie")]
    rankings.append(("no", "tea", "pie", "rum"))
    model = rs.RankingModel(["tea", "pie", "rum", "no"], rankings, [0.3, 0.3, 0.25, 0.15], no_choice_code=3)
    axes = plots.segments(model, Figure().subplots(), top=2)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tea > pie", "rum > (no)"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([60.0, 25.0])  # type: ignore[attr-defined]
    assert [text.get_text() for text in axes.texts] == ["60.0", "25.0"]
    assert axes.get_title().endswith("\n1 smaller type: 15.0 % together")
    axes = plots.segments(model, Figure().subplots(), places=1)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tea", "rum", "(no)"]
    whole = rs.RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    axes = plots.segments(whole, Figure().subplots(), places=3)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tea > pie"]


@pytest.mark.parametrize(
    ("about", "level", "words"),
    [
        ({}, 0.9, "90 % intervals"),
        ({"unused": [{"name": "Price", "warning": "Price is ignored."}]}, 0.95, "intervals (they ignore Price, so"),
    ],
)
def test_a_substitution_matrix_names_its_intervals_as_show_does(about: Any, level: float, words: str) -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    model = rs.estimate(counts, method="mnl").model
    many = rs.Bootstrap(counts, "mnl", replicates=3, model=model.note(**about))
    moves = many.substitution(interval=level)
    for found in (moves, moves.among(["tea", "pie"])):
        assert f", %, with {words}" in plots.substitution(found, Figure().subplots()).get_title()


@pytest.mark.slow
def test_the_substitution_matrix_has_numbers_while_there_is_room() -> None:
    model = rs.RankingModel(["tea", "pie", "cake"], [("tea", "pie", "cake"), ("pie", "tea", "cake")], [0.75, 0.25])
    axes = plots.substitution(model, Figure().subplots())
    assert sorted(text.get_text() for text in axes.texts) == ["0", "0", "100", "100"]  # nobody buys cake
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tea (75 %)", "pie (25 %)", "cake (0 %)"]
    known = replace(model.substitution(), low=np.full((3, 3), 0.125), high=np.full((3, 3), 0.875))
    texts = [text.get_text() for text in plots.substitution(known, Figure().subplots()).texts]
    assert sorted(texts) == 2 * ["0\n12 to 88"] + 2 * ["100\n12 to 88"]
    for size, numbers in ((20, 19), (21, 0)):  # everybody takes item 0
        many = rs.RankingModel(range(size), [range(size)], [1.0])
        assert len(plots.substitution(many.substitution(), Figure().subplots()).texts) == numbers
    rankings = [("tea", "pie", "no"), ("no", "tea", "pie")]
    leaves = rs.RankingModel(["no", "tea", "pie"], rankings, [0.75, 0.25], no_choice_code=0)
    axes = plots.substitution(replace(leaves.substitution(), low=np.eye(3), high=np.eye(3)), Figure().subplots())
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tea (75 %)", "pie (0 %)"]  # leaving is never gone
    assert [text.get_text() for text in axes.texts] == ["0\n0 to 0", "100\n0 to 0"]
    named = rs.RankingModel(["$5 tea", "x" * 40], [("$5 tea", "x" * 40)], [1.0])
    labels = [text.get_text() for text in plots.substitution(named, Figure().subplots()).get_xticklabels()]
    assert labels == [r"\$5 tea", "x" * 17 + "…"]


def test_long_names_that_begin_alike_stay_apart() -> None:
    names = [f"hand-made bread with $eeds of kind {kind}, {grams} g" for kind in ("A", "BB") for grams in (250, 500)]
    names += [names[0] + " more", "x" * 18, "x" * 19, "x" * 20]
    model = rs.RankingModel(names, [names], [1.0])
    labels = [text.get_text() for text in plots.substitution(model, Figure().subplots()).get_xticklabels()]
    assert len(set(labels)) == len(names)
    assert all(len(label.replace(r"\$", "$")) <= 18 for label in labels)
    assert "x" * 18 in labels  # the longest that fits


def test_the_fit_tells_what_sampling_error_does_not_explain() -> None:
    offers = rs.Assortments([("tea", "pie"), ("tea", "rum"), ("pie", "rum")])
    counts = rs.ChoiceCounts(offers, [50, 50, 90, 10, 0, 0])
    model = rs.RankingModel(["tea", "pie", "rum"], [("tea", "pie", "rum"), ("pie", "rum", "tea")], [0.52, 0.48])
    axes = plots.predicted_against_observed(model, counts, Figure().subplots())
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["within sampling error: 2", "outside: 2"]
    assert "0.200" in axes.get_title()
    assert axes.get_xlim()[0] < 0.0 > axes.get_ylim()[0]  # a share of 0 is inside
    with pytest.raises(ValueError, match="no observations yet"):
        plots.predicted_against_observed(model, rs.ChoiceCounts(offers), Figure().subplots())


def test_convergence_on_data_at_rest_is_against_rounds() -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie"), ("tea", "rum")]), [30, 70, 20, 80])
    axes = plots.convergence(rs.estimate(counts, method=PrimalDual(tolerance_mae=0.01)), Figure().subplots())
    assert axes.get_xlabel() == "rounds"


def test_a_decision_is_drawn_by_size_and_beside_its_runners_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    for name in ("value_by_size", "runners_up"):
        monkeypatch.setattr(
            f"rankstream.plots.fits.{name}", lambda found, axes, name=name: drawn.append((name, found, axes))
        )
    draw("a decision", tmp_path / "plot.svg")  # type: ignore[arg-type]
    (one, first, left), (other, second, right) = drawn
    assert (one, first, other, second) == ("value_by_size", "a decision", "runners_up", "a decision")
    assert left is not right
    assert (tmp_path / "plot.svg").stat().st_size > 0
    with pytest.raises(ValueError, match="There is nothing to draw without data: leave out --plot"):
        draw(None, tmp_path / "none.svg")  # type: ignore[arg-type]
