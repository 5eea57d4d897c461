"""Small markets borrow: laws restricted and extended as rankings are, and pools that no market is part of."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankstream as rs
from many_markets import choices, model_bytes
from rankstream.data.readers.options import check_options
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.errors import REPLICATES, StoredErrors, describe_errors
from rankstream.estimation.many import pooling
from rankstream.estimation.many.markets import seed_of
from rankstream.estimation.many.pooling import NodePool, Pools
from rankstream.models.entropy import guides
from rankstream.models.entropy.ensemble import fit_stack
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.entropy.guides import LOGIT, UNIFORM
from rankstream.models.entropy.pool import PoolGuide, extend_law, restrict_law
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix, plackett_luce
from rankstream.models.parametric.mnl import fit_mnl

ITEMS = ("tea", "pie", "cake", "scone", "none")


def law(seed: int = 0) -> RankingLaw:
    rng = np.random.default_rng(seed)
    moves = rng.gamma(1.0, size=(5, 5))
    chain = markov_chain(ITEMS, rng.dirichlet(np.ones(5)), moves / moves.sum(axis=1, keepdims=True))
    return mix([plackett_luce(ITEMS, rng.gamma(1.0, size=(2, 5)), [0.4, 0.6]), chain], [0.5, 0.5])


@pytest.mark.parametrize("some", [("cake", "none"), ("none", "tea", "scone"), ITEMS])
def test_a_restricted_law_chooses_as_the_whole_one(some: tuple[str, ...]) -> None:
    whole, part = law(), restrict_law(law(), some)
    assert part.items == some
    offers = rs.Assortments([some[:2], some], some)
    assert np.allclose(part.probabilities(offers), whole.probabilities(rs.Assortments([some[:2], some])), atol=1e-9)


def test_a_law_with_more_items_keeps_what_it_knew() -> None:
    known = restrict_law(law(), ITEMS[:3])
    worth = dict(zip(ITEMS, (1.0, 2.0, 3.0, 6.0, 4.0), strict=True))
    grown = extend_law(known, ITEMS, worth)
    assert grown.items == ITEMS
    before = rs.Assortments([ITEMS[:3], ITEMS[1:3]])
    classes = grown.class_weights > 0.0
    assert np.allclose(restrict_law(grown, ITEMS[:3]).attraction[classes], known.attraction[classes])
    assert np.abs(grown.probabilities(before) - known.probabilities(before)).max() < 0.15
    share = grown.probabilities(rs.Assortments([ITEMS], ITEMS))
    assert 0.5 < share[3] / share[4] / 1.5 < 2.0


def counted(truth: RankingLaw, size: int, seed: int, offers: rs.Assortments) -> rs.ChoiceCounts:
    rng = np.random.default_rng(seed)
    shares = truth.probabilities(offers)
    counts = rs.ChoiceCounts(offers)
    for number in rng.integers(offers.n_offers, size=size).tolist():
        first, last = offers.indptr[number], offers.indptr[number + 1]
        own = shares[first:last]
        counts.observe_coordinates([int(first + rng.choice(last - first, p=own / own.sum()))])
    return counts


OFFERS = rs.Assortments(
    [tuple(item for place, item in enumerate(ITEMS) if code >> place & 1) for code in range(7, 31, 2)]
)


def test_a_small_market_follows_a_pool_that_is_right_and_a_large_one_itself() -> None:
    right, wrong = law(1), law(2)
    few, many = counted(right, 60, 0, OFFERS), counted(right, 4000, 0, OFFERS)
    pools = {name: PoolGuide(prior=prior, before=5.0) for name, prior in (("right", right), ("wrong", wrong))}
    assert fit_stack(few, (LOGIT, UNIFORM, pools["right"])).pool_weight > 0.8
    assert fit_stack(many, (LOGIT, UNIFORM, pools["right"])).pool_weight > 0.8
    assert fit_stack(many, (LOGIT, UNIFORM, pools["wrong"])).pool_weight < 0.05


def test_with_few_offers_the_pool_alone_is_the_prior() -> None:
    offers = rs.Assortments([ITEMS, ITEMS[:3]], ITEMS)
    stack = fit_stack(counted(law(), 40, 0, offers), (LOGIT, PoolGuide(prior=law(), before=5.0)))
    assert stack.pool_weight == 1.0
    assert np.allclose(stack.prior.probabilities(offers), law().probabilities(offers))


def test_with_few_offers_held_out_choices_say_how_closely_to_follow_them() -> None:
    """A group that is unlike its pool follows its own choices; one that is like it stays near the pool."""
    offers = rs.Assortments([ITEMS, ITEMS[:3]], ITEMS)
    truth = law(1).probabilities(offers)

    def errors(pool: RankingLaw, size: int) -> tuple[float, float, float | None]:
        counts = counted(law(1), size, 3, offers)
        fit = fit_max_entropy(counts, PoolGuide(prior=pool, before=5.0))
        apart = (
            np.abs(shares - truth).max() for shares in (pool.probabilities(offers), fit.model.probabilities(offers))
        )
        return *apart, fit.trust

    before, after, trust = errors(law(2), 2000)
    assert after < 0.1 * before
    assert trust is not None
    assert trust <= 10.0
    before, after, trust = errors(law(1), 40)
    assert after < 0.05
    assert trust is None or trust >= 100.0


def test_a_group_with_few_offers_has_a_pool_of_its_own_parts() -> None:
    """The parts of a parent group borrow from each other, not from another parent that is unlike it."""
    offers = rs.Assortments([ITEMS, ITEMS[:3]], ITEMS)
    parts = [counted(law(1), 600, seed, offers) for seed in (1, 2)]
    far = PoolGuide(prior=law(2), before=5.0)
    work = pooling._NodeWork(("far",), {"a": 0, "b": 1}, parts[0] + parts[1], parts, far, 0)
    _, node = pooling._pool_node(work)
    truth = law(1).probabilities(offers)
    for child in ("a", "b"):
        shares = node.law(child).probabilities(offers)
        assert np.abs(shares - truth).max() < 0.06
    assert np.abs(law(2).probabilities(offers) - truth).max() > 0.2


def test_without_choices_to_hold_out_the_pool_is_alone() -> None:
    offers = rs.Assortments([ITEMS[:2], ITEMS[:3]], ITEMS)
    halves = rs.ChoiceCounts(offers, [0.5, 0.25, 0.5, 0.25, 0.25])
    stack = fit_stack(halves, (LOGIT, PoolGuide(prior=law(), before=5.0)), by_choices=True)
    assert stack.pool_weight == 1.0


def test_an_item_that_the_pool_does_not_know_comes_from_the_markets_own_data() -> None:
    counts = counted(law(), 500, 0, OFFERS)
    grown = PoolGuide(prior=restrict_law(law(), ITEMS[:4])).law(counts)
    assert grown.items == counts.assortments.items
    own = fit_mnl(counts)
    pair = rs.Assortments([("tea", "none")], ITEMS)
    assert abs(grown.probabilities(pair)[1] - own.probabilities(pair)[1]) < 0.2
    strangers = PoolGuide(prior=plackett_luce(["nail", "screw"], [1.0, 1.0])).law(counts)
    assert np.allclose(strangers.probabilities(OFFERS), own.probabilities(OFFERS))


def tallies(rows: pd.DataFrame, by: tuple[str, ...]) -> Tallies:
    found = Tallies(by, check_options(), "transactions")
    for *key, offer, chosen in rows[[*by, "offered", "chosen"]].itertuples(index=False):
        found.add(tuple(key), (tuple(offer.split(";")), chosen), 1.0)
    return found


def test_no_market_is_part_of_its_own_pool() -> None:
    rows = choices([f"store {number}" for number in range(7)])
    ((node, groups, without, total),) = pooling._nodes(tallies(rows, ("store",)), 0)
    assert node == ()
    assert total.observations == 420
    assert sorted(groups.values()) == [0, 0, 1, 1, 2, 2, 3]
    for group, counts in enumerate(without):
        inside = [store for store, number in groups.items() if number != group]
        assert counts.digest() == rs.read_counts(rows[rows.store.isin(inside)][["offered", "chosen"]]).digest()


def test_every_level_is_the_pool_of_the_next() -> None:
    first, second = (NodePool((plackett_luce(["tea", "pie"], [1.0, worth]),), {"York": 0}) for worth in (1.0, 3.0))
    pools = Pools({(): first, ("York",): second}, (2.0, 20.0))
    leaf, node, stranger = (pools.guide(key) for key in (("York", "hot"), ("York",), ("Wells", "hot")))
    assert leaf is not None
    assert node is not None
    assert stranger is not None
    assert (leaf.prior, leaf.before) == (second.laws[0], 20.0)
    assert (node.prior, node.before) == (first.laws[0], 2.0)
    assert (stranger.prior, stranger.before) == (first.laws[0], 20.0)
    assert Pools({}, ()).guide(("York",)) is None


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few guides, so that a pool takes a second."""
    for module in (pooling, guides):
        monkeypatch.setattr(module, "GUIDES", (LOGIT, UNIFORM))


@pytest.mark.usefixtures("quick")
def test_a_pool_is_learned_kept_and_frozen(tmp_path: Path) -> None:
    rows, out = choices([f"store {number}" for number in range(6)], size=40), tmp_path / "out"
    markets = rs.estimate_many(rows, "store", "max-entropy", 1, out)
    assert all(0.0 <= (row.pooled or 0.0) <= 1.0 for row in markets.rows)
    assert max(row.pooled or 0.0 for row in markets.rows) > 0.5
    before, pool = model_bytes(out), (out / "pool.json").read_bytes()
    more = pd.concat([rows, rows[rows.store == "store 2"].head(3)])
    rs.estimate_many(more, "store", "max-entropy", 1, out, pool="keep")
    after = model_bytes(out)
    assert (out / "pool.json").read_bytes() == pool
    assert {name.split(".")[0] for name in before if before[name] != after[name]} == {"store 2"}
    rs.estimate_many(more, "store", "max-entropy", 1, out, pool=True)
    assert (out / "pool.json").read_bytes() != pool
    renewed = model_bytes(out)
    assert len([name for name in after if after[name] != renewed[name]]) > 1  # those that borrow from another pool now
    again = Pools.load(out / "pool.json")
    again.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (out / "pool.json").read_bytes()


@pytest.mark.usefixtures("quick")
def test_models_with_a_pool_store_the_errors_of_their_own_refits(tmp_path: Path) -> None:
    rows, out = choices([f"store {number}" for number in range(4)], size=80), tmp_path / "out"
    plain = rs.estimate_many(rows, "store", "max-entropy", 1, out)
    assert all("errors" not in plain.model(key).about for key in plain)
    files = model_bytes(out)
    markets = rs.estimate_many(rows, "store", "max-entropy", 1, out, pool="keep", errors=True)
    key = next(iter(markets))
    model, seed, guide = markets.model(key), seed_of(key, 0), Pools.load(out / "pool.json").guide(key)
    stored = StoredErrors.of(model)
    assert stored is not None
    assert guide is not None
    method = rs.methods.MaxEntropy(prior=guide)
    many = rs.Bootstrap(markets.counts(key), method, REPLICATES, seed, model=plain.model(key))
    assert many.misfit.unseen > 0.0  # held-out offers have a say with a pool, too
    expected = describe_errors(many)
    for name in ("shares", "substitution"):
        np.testing.assert_allclose(stored.content[name], expected[name], rtol=0.05, atol=1e-3)
    assert rs.estimate_many(rows, "store", "max-entropy", 1, out, pool="keep").model(key).predict(
        ("tea", "none")
    ) == model.predict(("tea", "none"))
    assert model_bytes(out) == files  # without errors, the models are what they were


@pytest.mark.usefixtures("quick")
def test_nested_columns_give_nested_pools(tmp_path: Path) -> None:
    rs.estimate_many(choices(size=80), ["kind", "store"], "max-entropy", 1, tmp_path / "out")
    pools = Pools.load(tmp_path / "out" / "pool.json")
    assert set(pools.nodes) == {(), ("hot",), ("cold",)}
    assert len(pools.before) == 2


def test_pools_that_cannot_be(tmp_path: Path) -> None:
    wrong: Any = "some"
    with pytest.raises(ValueError, match="A pool needs the default 'auto' or 'max-entropy', not 'nearest'"):
        rs.estimate_many(choices(), "store", "nearest", 1, tmp_path / "out")
    with pytest.raises(ValueError, match=r"There is no pool .* to reuse: run with pool=True first"):
        rs.estimate_many(choices(), "store", "max-entropy", 1, tmp_path / "out", pool="keep")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="pool is 'some'"):
        rs.estimate_many(choices(), "store", out=tmp_path / "out", pool=wrong)
    (tmp_path / "pool.json").write_text('{"before": [')
    with pytest.raises(ValueError, match="is damaged"):
        Pools.load(tmp_path / "pool.json")


def test_the_fit_of_a_pool_knows_its_options() -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie", "none")]), [5, 3, 2])
    guide = PoolGuide(prior=law())
    found = guide.fit(counts, 3, starts=2, max_rounds=7)
    assert found.models[0].items == ("tea", "pie", "none")
    assert found.models[0].attraction == pytest.approx(restrict_law(law(), ("tea", "pie", "none")).attraction)
    assert UNIFORM.fit(counts).models[0].attraction == pytest.approx(np.full((1, 3), 1 / 3))
    misspelled: dict[str, Any] = {"strats": 2}
    with pytest.raises(TypeError, match="strats"):
        guide.fit(counts, **misspelled)
