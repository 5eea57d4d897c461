"""Random laws of rankings and Markov chains."""

import numpy as np

from rankstream._core.types import Vec
from rankstream.models.entropy import ranking_laws as laws
from rankstream.models.entropy.ranking_laws import RankingLaw


def a_prior(items: tuple[object, ...], kind: str, seed: int = 0) -> RankingLaw:
    random, n_items = np.random.default_rng(seed), len(items)
    classes = laws.plackett_luce(items, random.uniform(0.05, 1.0, (3, n_items)), random.dirichlet(np.ones(3)))
    moves = random.uniform(0.05, 1.0, (n_items, n_items))
    np.fill_diagonal(moves, 0.0)
    chain = laws.markov_chain(items, random.dirichlet(np.ones(n_items)), moves / moves.sum(axis=1, keepdims=True))
    return {"classes": classes, "chain": chain, "mixed": laws.mix([classes, chain], [0.3, 0.7])}[kind]


def random_chain(n_items: int, seed: int) -> tuple[Vec, Vec]:
    generator = np.random.default_rng(seed)
    moves = generator.dirichlet(np.full(n_items, 0.5), size=n_items) + 1e-6
    np.fill_diagonal(moves, 0.0)
    return generator.dirichlet(np.ones(n_items)), moves / moves.sum(axis=1, keepdims=True)
