"""Choices of a simulated market as a data frame of what was available."""

import numpy as np
import pandas as pd

from rankstream.data import simulate


def choices(seed: int, size: int) -> tuple[pd.DataFrame, list[str]]:
    """Choices from a simulated market, as a data frame of availability and a list of labels."""
    market = simulate.market(seed, n_items=5, n_offers=8, n_test=5)
    drawn = simulate.draw_choices(market.assortments, market.frequencies(), size, np.random.default_rng(seed))
    rows = np.zeros((size, 6), dtype=int)
    for row, coordinate in zip(rows, drawn, strict=True):
        offer = market.assortments.offers[market.assortments.owner[coordinate]]
        row[[market.assortments.code(item) for item in offer]] = 1
    chosen = [str(market.assortments.items[market.assortments.members[k]]) for k in drawn]
    return pd.DataFrame(rows, columns=list(market.assortments.items)), chosen
