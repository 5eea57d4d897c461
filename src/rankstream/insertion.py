"""New items put into rankings that were found before they appeared."""

from hashlib import blake2b
from typing import Any

import numpy as np

from rankstream._core.types import Codes
from rankstream.oracles import Ties


def extend_rankings(rankings: Codes, n_items: int, ties: Ties, seed: int) -> Codes:
    """The rankings with new items put in one after another, each by the tie rule.

    >>> extend_rankings(np.array([[1, 0]]), 4, "last", 0), extend_rankings(np.array([[1, 0]]), 4, "first", 0)
    (array([[1, 0, 2, 3]]), array([[3, 2, 1, 0]]))
    """
    for code in range(rankings.shape[1], n_items):
        if ties == "random":
            places = np.array([_draw(ranking, seed) for ranking in rankings], dtype=np.int64)
        else:
            places = np.full(len(rankings), 0 if ties == "first" else code)
        wider = np.empty((len(rankings), code + 1), dtype=np.int64)
        at = np.arange(code + 1)
        from_before = np.arange(code) + (np.arange(code) >= places[:, None])
        wider[np.arange(len(rankings))[:, None], from_before] = rankings
        wider[at == places[:, None]] = code
        rankings = wider
    return rankings


def _draw(ranking: Codes, seed: int) -> int:
    """A place among the items, from a hash: the same on every machine, whatever else was drawn before."""
    digest = blake2b(ranking.tobytes(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") % (len(ranking) + 1)


def tie_rule(oracle: Any) -> tuple[Ties, int]:
    """The rule and the seed of an oracle, or of the one inside its wrappers; random from 0 where it has none."""
    while hasattr(oracle, "oracle"):
        oracle = oracle.oracle
    return getattr(oracle, "ties", "random"), getattr(oracle, "seed", 0)
