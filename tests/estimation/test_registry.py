import numpy as np
import pytest

import rankstream as rs
from odd_data import odd_data
from rankstream import oracles
from rankstream._core.types import Vec
from rankstream.columns.mle import fit_mle
from rankstream.data import simulate
from rankstream.evaluate.compare import MODELS
from rankstream.models import ChoiceModel
from rankstream.oracles import Answer

pytestmark = pytest.mark.quick
RIVALS = [name for name in MODELS if name != "max-entropy"]  # which refuses a single item


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("about", odd_data())
def test_every_baseline_survives_odd_data(name: str, about: str) -> None:
    counts = odd_data()[about]
    model = MODELS[name](counts)
    offers = counts.assortments
    assert isinstance(model, ChoiceModel)
    assert model.items == offers.items
    shares = model.probabilities(offers)
    assert np.all(shares >= 0.0)
    assert np.allclose(np.add.reduceat(shares, offers.indptr[:-1]), 1.0)
    first = offers.offers[0]
    assert list(model.predict(first)) == list(first)
    assert np.allclose(list(model.predict(first).values()), shares[: len(first)])


@pytest.mark.parametrize("name", RIVALS)
def test_every_baseline_recovers_a_market_from_many_choices(name: str) -> None:
    market = simulate.market(seed=0, n_items=6, segments=1, n_offers=10, n_test=1)  # a logit, which all can be
    counts = rs.ChoiceCounts(market.assortments, np.round(1e6 * market.frequencies()))
    model = MODELS[name](counts)
    assert np.abs(model.probabilities(market.assortments) - market.frequencies()).max() < 0.05


class Unsure:
    """An exact oracle that does not trust itself: its bound is too low by a tenth."""

    def __init__(self, assortments: rs.Assortments) -> None:
        self.exact = oracles.auto(assortments)

    def cheapest(self, costs: Vec) -> Answer:
        answer = self.exact.cheapest(costs)
        return Answer(answer.ranking, answer.value, answer.value - 0.1)


def test_an_inexact_oracle_widens_the_gap_and_stops_all_the_same() -> None:
    market = simulate.market(seed=6, n_items=5, n_offers=8, n_test=1)
    counts = next(market.stream(first=200))
    unsure = fit_mle(counts, oracle=Unsure, max_rounds=300)
    exact = fit_mle(counts, max_rounds=300)
    assert not unsure.proven
    assert unsure.bound < exact.bound <= exact.value
    assert unsure.value == pytest.approx(exact.value, abs=1e-4)
