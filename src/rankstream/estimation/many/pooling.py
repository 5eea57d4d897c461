"""Pools for small markets: a ranking law of all other markets, at every level of the columns that name a market."""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankstream._core.files import write_whole
from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Vec
from rankstream._core.watch import Progress
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed, restrict
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.many.markets import Market, digest_of, seed_of
from rankstream.estimation.many.work import in_parallel
from rankstream.models.entropy.ensemble import MIN_HELD_OUT_OFFERS, MIN_REFIT_WEIGHT, fit_stack, score_pool
from rankstream.models.entropy.guides import CHAIN, GUIDES, TASTE, Guide, guides_for
from rankstream.models.entropy.pool import PoolGuide, guides_with
from rankstream.models.entropy.ranking_laws import RankingLaw, mix

GROUPS = 4
"""Groups of markets; the pool of each is of the others. ``benchmarks/markets.py accuracy`` shows whom that helps."""
TRIED = (2.0, 5.0, 10.0, 20.0)
"""Candidate weights of a pool, in choices."""
SAMPLE = 12
"""Number of markets at each level on which the weight is chosen."""
MOST_COORDINATES, MOST_ITEMS = 4000, 40
"""A pool uses the offers with the most choices up to the first limit; beyond the second, it omits slow guides."""


@dataclass(frozen=True, eq=False)
class NodePool:
    """The pool of the markets below one node of the tree of names: a law for each group of them, from the others."""

    laws: tuple[RankingLaw, ...]
    groups: dict[str, int]

    def law(self, child: str) -> RankingLaw:
        """Return the law for one child; a child that is new since the pool was made gets a group by its hash."""
        return self.laws[self.groups.get(child, int(digest_of(child)[:7], 16) % len(self.laws))]


@dataclass(frozen=True, eq=False)
class Pools:
    """The pools of all levels, their weights in choices (``before``), and the hash of their ``data``."""

    nodes: dict[Market, NodePool]
    before: tuple[float, ...]
    data: str = ""
    _digests: dict[int, str] = field(default_factory=dict)

    def guide(self, key: Market) -> PoolGuide | None:
        """Return the pool for a market or a node: that of the nearest level above with a pool."""
        for level in range(len(key) - 1, -1, -1):
            node = self.nodes.get(key[:level])
            if node is not None:
                return PoolGuide(prior=node.law(key[level]), before=self.before[min(len(key), len(self.before)) - 1])
        return None

    def digest(self, guide: PoolGuide | None) -> str:
        """Return a hash of a pool."""
        if guide is None:
            return ""
        known = self._digests.get(id(guide.prior))
        if known is None:
            known = self._digests[id(guide.prior)] = digest_of(_content(guide.prior))
        return f"{known} {guide.before!r}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically."""
        nodes = [
            {"node": list(key), "laws": [_content(law) for law in node.laws], "groups": node.groups}
            for key, node in self.nodes.items()
        ]
        write_whole(path, json.dumps({"before": self.before, "data": self.data, "nodes": nodes}) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Pools":
        """Read what ``save`` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            nodes = {
                tuple(node["node"]): NodePool(tuple(map(_law, node["laws"])), dict(node["groups"]))
                for node in content["nodes"]
            }
            return cls(nodes, tuple(content["before"]), content["data"])
        except FileNotFoundError:
            raise ValueError(f"There is no pool {path} to reuse: run with pool=True first.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({type(error).__name__}): run with pool=True again.") from None


def _content(law: RankingLaw) -> dict[str, Any]:
    order = {"order": [list(chain) for chain in law.order]} if law.order else {}
    return {"items": list(law.items)} | law.to_content() | order


def _law(content: dict[str, Any]) -> RankingLaw:
    return RankingLaw.from_content(content["items"], content, tuple(map(tuple, content.get("order", ()))))


def make_pools(tallies: Tallies, seed: int, n_jobs: int, tell: Progress) -> Pools:
    """Fit the pools of all levels from the top down; the weight of each level's own pool is chosen first."""
    depth = len(tallies.by)
    found, before = Pools({}, ()), list[float]()
    for level in range(depth):
        tell(f"fitting the pool by {tallies.by[level]}", 0.0)
        nodes = list(_nodes(tallies, level))
        if level:
            samples = [(key, total) for key, _, _, total in nodes]
            before.append(_choose(samples, Pools(found.nodes, (*before, TRIED[1])), seed, n_jobs))
            found = Pools(found.nodes, tuple(before))
        works = [
            _NodeWork(key, groups, total, without, found.guide(key) if level else None, seed_of(key, seed))
            for key, groups, without, total in nodes
        ]
        made = dict(in_parallel(_pool_node, works, n_jobs))
        found = Pools(found.nodes | {key: made[key] for key in sorted(made) if made[key].laws}, tuple(before))
    leaves = [(key, counts) for key, counts in tallies.counts() if not isinstance(counts, str)]
    before.append(_choose(leaves, Pools(found.nodes, (*before, TRIED[1])), seed, n_jobs))
    return Pools(found.nodes, tuple(before))


def _nodes(tallies: Tallies, level: int) -> Iterator[tuple[Market, dict[str, int], list[ChoiceCounts], ChoiceCounts]]:
    """Yield the nodes of a level with several children: their groups, the counts without each group, and in total."""
    sums: dict[Market, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for key, tally in tallies.tallies():
        own = sums[key[:level]][key[level]]
        for outcome, weight in tally.items():
            own[outcome] += weight
    for node, children in sums.items():
        if len(children) > 1:
            number = min(GROUPS, len(children))
            groups = {child: place % number for place, child in enumerate(sorted(children, key=digest_of))}
            without = [_sum(children[child] for child in groups if groups[child] != group) for group in range(number)]
            yield node, groups, [tallies.count(one) for one in without], tallies.count(_sum(children.values()))


def _sum(parts: Iterable[dict[Any, float]]) -> dict[Any, float]:
    total: dict[Any, float] = defaultdict(float)
    for part in parts:
        for outcome, weight in part.items():
            total[outcome] += weight
    return dict(total)


@dataclass(frozen=True, eq=False)
class _NodeWork:
    key: Market
    groups: dict[str, int]
    total: ChoiceCounts
    without: list[ChoiceCounts]
    guide: PoolGuide | None
    seed: int


def _pool_node(work: _NodeWork) -> tuple[Market, NodePool]:
    """Weight guides on held-out offers of all children together, then fit them without each group."""
    total = _largest(work.total)
    if total.assortments.n_items < 2:
        return work.key, NodePool((), {})
    with one_blas_thread():
        guides: tuple[Guide, ...] = GUIDES if work.guide is None else guides_with(work.guide, total)
        if total.assortments.n_items > MOST_ITEMS:
            guides = tuple(guide for guide in guides if guide not in (TASTE, CHAIN))
        stack = fit_stack(total, guides, work.seed, by_choices=True)
        kept = stack.weights >= min(MIN_REFIT_WEIGHT, float(stack.weights.max()))
        weights = stack.weights[kept] / stack.weights[kept].sum()
        chosen = [one.guide for one, keep in zip(stack.guides, kept.tolist(), strict=True) if keep]
        laws = []
        for counts in map(_largest, work.without):
            fitted = [guide.fit(counts, work.seed, 2, 5e-3).law() for guide in chosen]
            laws.append(mix(fitted, weights.tolist()))
    return work.key, NodePool(tuple(laws), work.groups)


def _largest(counts: ChoiceCounts) -> ChoiceCounts:
    """Restrict counts to the offers with the most choices, up to the limit for pools, and to their items."""
    data = observed(counts)
    offers = data.assortments
    order = np.argsort(-data.totals, kind="stable")
    enough = np.cumsum(np.diff(offers.indptr)[order]) <= MOST_COORDINATES
    enough[0] = True
    some = restrict(data, np.sort(order[enough]))
    offered = {item for offer in some.assortments.offers for item in offer}
    items = [item for item in offers.items if item in offered]
    chains = [[offers.items[code] for code in chain if offers.items[code] in offered] for chain in offers.chains or ()]
    pairs = [pair for chain in chains for pair in pairwise(chain)]
    return ChoiceCounts(type(offers)(some.assortments.offers, items, pairs or None), some.tallies)


def _choose(samples: list[tuple[Market, ChoiceCounts]], pools: Pools, seed: int, n_jobs: int) -> float:
    """Choose the weight of a pool, in choices, that predicts held-out offers of some markets best.

    Every market counts the same, however many choices it has.
    """
    usable = [
        (observed(counts), guide, seed_of(key, seed))
        for key, counts in sorted(samples, key=lambda pair: digest_of(list(pair[0])))
        if counts.assortments.n_offers >= MIN_HELD_OUT_OFFERS and (guide := pools.guide(key)) is not None
    ]
    usable = [one for one in usable if one[0].assortments.n_offers >= MIN_HELD_OUT_OFFERS][:SAMPLE]
    if not usable:
        return TRIED[1]
    scores: Vec = np.sum(sorted(map(tuple, in_parallel(_score, usable, n_jobs))), axis=0)
    return TRIED[int(scores.argmax())]


def _score(given: tuple[ChoiceCounts, PoolGuide, int]) -> list[float]:
    counts, guide, seed = given
    with one_blas_thread():
        guides = guides_with(guide, counts)
        folds = fit_stack(counts, guides, seed).folds
        scores = score_pool(folds, guides_for(counts.assortments, guides), TRIED) / float(counts.observations)
    return list(map(float, scores))
