"""Random models, margins and constraints to decide about, and the mask of an offer."""

from typing import Any

import hypothesis.strategies as st
import numpy as np

from naive_decide import Constraints
from rankstream import Assortments, EntropyModel, RankingModel
from rankstream._core.types import Label
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix, plackett_luce
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel

KINDS = ("rankings", "classes", "chains", "mixed", "logit", "latent", "markov")
FIT = {"log_likelihood": 0.0, "iterations": 1, "converged": True, "n_parameters": 1}


def moves(random: np.random.Generator, n: int) -> Any:
    table = random.dirichlet(np.ones(n), size=n)
    np.fill_diagonal(table, 0.0)
    return table / table.sum(axis=1, keepdims=True)


def make_model(kind: str, n: int, nothing: bool, seed: int) -> Any:
    """A random model of n items, 0 among them as the no-choice item if there is one."""
    random = np.random.default_rng(seed)
    items = tuple(f"i{number}" for number in range(n))
    code = 0 if nothing else None
    if kind == "rankings":
        orders = np.array([random.permutation(n) for _ in range(int(random.integers(1, 9)))])
        return RankingModel.from_codes(items, orders, random.dirichlet(np.ones(len(orders))), code)
    if kind == "logit":
        return LogitModel(items=items, no_choice_code=code, attraction=random.dirichlet(np.ones(n)), **FIT)  # type: ignore[arg-type]
    if kind == "latent":
        mixture, table = random.dirichlet(np.ones(3)), random.dirichlet(np.full(n, 0.5), size=3)
        return LatentClassModel(items=items, no_choice_code=code, mixture=mixture, attraction=table, **FIT)  # type: ignore[arg-type]
    if kind == "markov":
        arrival = random.dirichlet(np.ones(n))
        return MarkovChainModel(items=items, no_choice_code=code, arrival=arrival, transitions=moves(random, n), **FIT)  # type: ignore[arg-type]
    offers = Assortments(random_offers(random, items, nothing), items)
    prior = make_prior(kind, items, random)
    return EntropyModel(prior, offers, random.normal(scale=1.5, size=offers.n_coordinates))


def random_offers(random: np.random.Generator, items: tuple[str, ...], nothing: bool) -> list[list[str]]:
    """Up to four different offers; the first item is the only one that is in all of them, or none is."""
    own = list(items[1:] if nothing else items)
    picks = [random.choice(own, size=int(random.integers(1, len(own) + 1)), replace=False) for _ in range(4)]
    if not nothing:
        picks += [np.array([own[0]]), np.array(own[1:])]
    else:
        picks += [np.array(own[:1]), np.array(own[1:] or own[:0])]
    return [[*([items[0]] if nothing else []), *pick.tolist()] for pick in picks]


def make_prior(kind: str, items: tuple[str, ...], random: np.random.Generator) -> RankingLaw:
    n = len(items)
    classes = plackett_luce(items, random.dirichlet(np.ones(n), size=2), random.dirichlet(np.ones(2)))
    chain = markov_chain(items, random.dirichlet(np.ones(n)), moves(random, n))
    return {"classes": classes, "chains": chain, "mixed": mix([classes, chain], [0.4, 0.6])}[kind]


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> tuple[Any, dict[Label, float], Constraints]:
    """A model, margins and constraints, which may contradict each other."""
    n = draw(st.integers(3, 6))
    nothing = draw(st.booleans())
    model = make_model(draw(st.sampled_from(kinds)), n, nothing, draw(st.integers(0, 10**6)))
    own = [item for item in model.items if item != model.no_choice]
    margins: dict[Label, float] = {item: draw(st.integers(-2, 9)) / 2 for item in own}
    pairs = st.lists(st.permutations(own).map(lambda order: tuple(order[:2])), max_size=2)
    said: Constraints = {}
    for name, some in {
        "at_most": st.integers(0, n), "at_least": st.integers(0, 2), "requires": pairs, "excludes": pairs,
        "must": st.lists(st.sampled_from(own), max_size=1), "never": st.lists(st.sampled_from(own), max_size=2),
        "listing_costs": st.dictionaries(st.sampled_from(own), st.sampled_from([0.1, 0.3, 1.0])),
    }.items():  # fmt: skip
        if draw(st.booleans()):
            said[name] = draw(some)
    if draw(st.booleans()):
        said["space"] = {item: draw(st.integers(0, 4)) for item in own}
        said["capacity"] = draw(st.integers(0, 10))
    if len(own) < 2:
        said.pop("requires", None)
        said.pop("excludes", None)
    return model, margins, said


def offer_mask(offer: Any, items: tuple[Label, ...]) -> Any:
    """Whether each item is in an offer."""
    return np.array([item in offer for item in items])
