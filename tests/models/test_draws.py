from collections import Counter
from typing import Any

import numpy as np
import pytest

import naive
from random_laws import a_prior
from rankstream import Assortments
from rankstream.models.entropy.soft_lattice import SoftLattice, TiltedRankings


@pytest.mark.parametrize("kind", ["classes", "chain", "mixed"])
def test_tilted_rankings_are_drawn_by_their_law(kind: str) -> None:
    items = ("a", "b", "c", "d")
    offers = Assortments([("a", "b"), ("b", "c")], items)  # "d" is in no offer
    prior, duals = a_prior(items, kind), np.array([0.5, -0.5, 1.0, 0.0])
    rows = TiltedRankings(SoftLattice(offers, prior), duals).draw(6000, np.random.default_rng(0))
    found = Counter(tuple(row) for row in rows.tolist())
    rankings = naive.all_rankings(offers)
    logs = [
        np.log(naive.prior_probability(prior, ranking)) - naive.vertex(offers, ranking) @ duals for ranking in rankings
    ]
    law = np.exp(logs) / np.exp(logs).sum()
    shares = np.array([found[tuple(ranking)] / 6000 for ranking in rankings])
    assert np.abs(shares - law).max() < 4.5 * np.sqrt(law.max() / 6000)
    chi_square = 6000 * ((shares - law) ** 2 / law).sum()
    assert chi_square < 60.0  # 23 degrees of freedom


@pytest.mark.parametrize(("stops", "rows"), [(1, 100), (2, 200), (9, 250)])
def test_drawing_from_a_prior_ends_in_hundreds_where_it_is_told_to(stops: int, rows: int) -> None:
    prior, said = a_prior(tuple("abcd"), "mixed", 1), list[str]()

    def count(words: str) -> bool:
        said.append(words)
        return len(said) == stops

    watch: Any = count

    drawn = prior.sample(250, 3, watch)
    assert (drawn == prior.sample(250, 3)[:rows]).all()
    assert drawn.shape == (rows, 4)
    assert said == ["100 rankings drawn", "200 rankings drawn"][:stops]
