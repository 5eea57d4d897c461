"""Random models of items at price levels, with costs and constraints to decide about."""

from typing import Any

import hypothesis.strategies as st
import numpy as np

from naive_prices_decide import Said
from rankstream import Assortments, EntropyModel, PriceLevels, RankingModel
from rankstream._core.types import Label
from rankstream.models.entropy.ranking_laws import plackett_luce
from rankstream.models.lifts import chains_of, lift
from rankstream.models.parametric.attribute_logit import PricedModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel

OWN = ("tea", "pie", "cake")
KINDS = ("rankings", "entropy", "logit", "latent", "falling", "priced", "loose", "markov")
FIT = {"log_likelihood": 0.0, "iterations": 1, "converged": True, "n_parameters": 1}
Case = tuple[Any, dict[Label, float], Said]


def make_model(kind: str, counts: tuple[int, ...], nothing: bool, gift: bool, seed: int) -> Any:
    """A random model of items at levels, of a gift without a price and of no choice, where these are there."""
    random = np.random.default_rng(seed)
    levels = PriceLevels(
        {item: sorted(random.choice(np.arange(2, 9), n, replace=False)) for item, n in zip(OWN, counts, strict=False)}
    )
    labels = [*levels.labels, *(["gift"] if gift else []), *(["no"] if nothing else [])]
    items: list[Any] = [labels[k] for k in random.permutation(len(labels))]
    alone = [[label, *(["no"] if nothing else [])] for label in items if label != "no"]
    offers = Assortments(alone, items, levels.order)
    n, order, code = len(items), chains_of(offers), items.index("no") if nothing else None
    shares, table = random.dirichlet(np.ones(2)), random.dirichlet(np.full(n, 0.5), size=2)
    common: dict[str, Any] = {"items": tuple(items), "no_choice_code": code, **FIT}
    if kind == "rankings":
        raw = np.array([random.permutation(n) for _ in range(int(random.integers(1, 9)))])
        return RankingModel.from_codes(items, lift(raw, order), random.dirichlet(np.ones(len(raw))), code)
    if kind == "entropy":
        wide = offers.extend([[levels.labels[0], levels.labels[-1], *(["no"] if nothing else [])]])
        duals = random.normal(scale=1.5, size=wide.n_coordinates)
        return EntropyModel(plackett_luce(items, table, shares, order), wide, duals)
    if kind == "loose":  # fitted without the order
        duals = random.normal(size=offers.n_coordinates)
        return EntropyModel(plackett_luce(items, table, shares), Assortments(alone, items), duals)
    if kind == "markov":
        return MarkovChainModel(arrival=table[0], transitions=random.dirichlet(np.ones(n), size=n), **common)
    if kind == "logit":
        return LogitModel(attraction=table[0], **common)
    if kind == "latent":
        return LatentClassModel(mixture=shares, attraction=table, **common)
    if kind == "falling":
        return LatentClassModel(mixture=shares, attraction=table, order=order, **common)
    owner, prices = zip(*(levels.of(item) for item in items), strict=True)
    numbers = np.unique([str(one) for one in owner], return_inverse=True)[1]
    constants, slopes = random.normal(size=(2, numbers.max() + 1)), random.uniform(0.1, 1.0, 2)
    money = np.array([price or 0.0 for price in prices])
    return PricedModel(mixture=shares, constants=constants, slopes=slopes, prices=money, owner=numbers, **common)


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = ("rankings",)) -> Case:
    """A model, costs and constraints, which may contradict each other."""
    counts = tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    nothing, gift = draw(st.booleans()), draw(st.booleans())
    model = make_model(draw(st.sampled_from(kinds)), counts, nothing, gift, draw(st.integers(0, 10**6)))
    levels = model.price_levels
    own: list[Label] = [*levels.items, *(["gift"] if gift else [])]
    costs = {item: draw(st.integers(0, 6)) / 2 for item in levels.items}
    name = st.sampled_from([*own, *levels.labels])
    pair = st.tuples(name, name).filter(lambda two: levels.of(two[0])[0] != levels.of(two[1])[0])
    present = st.fixed_dictionaries({}, optional={item: st.sampled_from(levels.levels[item]) for item in levels.items})
    said: Said = {"margins": {"gift": draw(st.integers(-2, 4)) / 2} if gift else None}
    for key, some in {
        "at_most": st.integers(0, 3), "at_least": st.integers(0, 2), "must": st.lists(name, max_size=1),
        "never": st.lists(name, max_size=2), "requires": st.lists(pair, max_size=2),
        "excludes": st.lists(pair, max_size=2), "ladders": st.just([tuple(levels.items[::-1])]),
        "listing_costs": st.dictionaries(st.sampled_from(own), st.sampled_from([0.1, 0.5])),
    }.items():  # fmt: skip
        if draw(st.integers(0, 2)) == 0:
            said[key] = draw(some)
    if draw(st.booleans()):
        said["space"], said["capacity"] = {item: draw(st.integers(0, 4)) for item in own}, draw(st.integers(0, 8))
    if draw(st.booleans()):
        said["present"], said["changes"] = draw(present), draw(st.integers(0, 3))
    return model, costs, said


NONE = r"contradict|No offer meets|fill|may be in it|both must and never|All levels of"
