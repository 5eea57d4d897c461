"""Hypothesis strategies: small random problems; and the mark of tests that are too large for uncompiled kernels."""

import os
from itertools import combinations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings

from rankstream import Assortments
from rankstream._core.types import Vec

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"
compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="too large for kernels that are not compiled")


def examples(number: int) -> settings:
    """So many examples; uncompiled and in the quick tier the first of them, as many as the profile has of 100."""
    return settings(max_examples=max(1, number * settings().max_examples // 100))


@st.composite
def assortments(draw: st.DrawFn, most_items: int = 6, most_offers: int = 8) -> Assortments:
    """Random offers of 2 to ``most_items`` items; half of them with an item that is in every offer."""
    n = draw(st.integers(2, most_items))
    universal = draw(st.sampled_from([None, *range(n)]))
    others = [item for item in range(n) if item != universal]
    subsets = [s for size in range(1, len(others) + 1) for s in combinations(others, size)]
    if universal is not None:
        subsets.append(())
    chosen = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=most_offers))
    offers = [(*s, universal) if universal is not None else s for s in chosen]
    return Assortments([draw(st.permutations(offer)) for offer in offers], items=range(n))


def costs(size: int) -> st.SearchStrategy[Vec]:
    """Cost vectors with ties, zeros, huge and tiny numbers."""
    small = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    wild = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=size, max_size=size)
    return st.one_of(small, wild).map(lambda values: np.array(values, dtype=np.float64))


@st.composite
def frequencies(draw: st.DrawFn, offers: Assortments) -> Vec:
    """Random choice frequencies, sometimes on the boundary."""
    size = offers.n_coordinates
    raw = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), dtype=np.float64)
    raw[offers.indptr[:-1]] += 1e-3
    shares: Vec = raw / np.add.reduceat(raw, offers.indptr[:-1])[offers.owner]
    return shares


@st.composite
def problems(draw: st.DrawFn, most_items: int = 6) -> tuple[Assortments, Vec]:
    """Assortments with a cost vector."""
    offers = draw(assortments(most_items))
    return offers, draw(costs(offers.n_coordinates))


@st.composite
def noisy_problems(draw: st.DrawFn) -> tuple[Assortments, Vec, tuple[float, ...]]:
    """Assortments with frequencies and a weight for every offer."""
    offers = draw(assortments(5, 6))
    weights = draw(st.lists(st.sampled_from([0.3, 1.0, 1.0, 2.5]), min_size=offers.n_offers, max_size=offers.n_offers))
    return offers, draw(frequencies(offers)), tuple(weights)
