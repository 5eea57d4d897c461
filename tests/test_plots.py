import numpy as np
import pytest
from matplotlib.figure import Figure

import rankstream as rs
from rankstream import plots


def test_convergence_uses_observations_where_they_are_known() -> None:
    market = rs.simulate.market(0)
    dynamic = rs.estimate(market.assortments, market.stream(), tolerance=0.01, certify_every=5)
    static = rs.estimate(market.assortments, market.frequencies(), tolerance=0.01)
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
    models = [rs.estimate(offers, period, tolerance=0.01).model for period in periods]
    axes = plots.shares_over_time(periods, ("tea", "pie"), Figure().subplots(), times=[10, 20, 30], models=models)
    line = next(line for line in axes.get_lines() if len(line.get_xdata()) == 3)  # type: ignore[arg-type]
    assert line.get_xdata() == pytest.approx([10, 20, 30])
    assert np.asarray(line.get_ydata())[[0, 2]] == pytest.approx([0.3, 0.6], abs=0.02)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["tea", "pie"]  # type: ignore[union-attr]
    assert axes.get_xlabel() == "time"
    many = rs.Assortments([range(12)])
    axes = plots.shares_over_time([rs.ChoiceCounts(many, np.ones(12))], range(12), Figure().subplots())
    assert len(axes.get_legend().get_texts()) == 12  # type: ignore[union-attr]
