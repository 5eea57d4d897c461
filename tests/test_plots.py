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
