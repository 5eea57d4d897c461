"""The Markov chain choice model: customers move from item to item until they reach one on offer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import Fitted, check_start, climb, fit_facts
from rankstream.models.parametric.em_kernels import chain_shares, chain_step, visiting_order
from rankstream.models.parametric.mnl import fit_mnl

SMOOTHING = 3.0  # imaginary moves from each item: fewer follow noise, more the logit (benchmarks/accuracy.py)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkovChainModel(Fitted):
    """Arrivals and transitions (Blanchet, Gallego and Goyal 2016).

    A customer arrives at an item, and moves on from it while it is not on offer. The first offered item on the way is
    chosen.

    It also has the attributes of ``Fitted``.

    Attributes
    ----------
    arrival : array
        ``arrival[i]`` is the probability of arriving at item i.
    transitions : array
        ``transitions[i, k]`` is the probability of moving from item i, if it is missing, to item k.
    heights : tuple of floats
        The objective at the points that the best start went through; it never falls.
    """

    FORMAT: ClassVar[str] = "rankstream-markov-chain-model"
    ARRAYS: ClassVar[dict[str, str]] = {"arrival": "n", "transitions": "nn"}
    arrival: Vec
    transitions: Vec
    heights: tuple[float, ...] = ()

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """Return the probabilities of the first offered item that the chain reaches."""
        out = np.empty(len(members))
        chain_shares(indptr, members, self.arrival, self.transitions, out)
        return out

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Return the orders in which customers would first visit the items."""
        return np.array([first_visits(self.arrival, self.transitions, random) for _ in range(size)], dtype=np.int64)


def first_visits(arrival: Vec, transitions: Vec, random: np.random.Generator) -> Codes:
    """Draw the order in which a customer of a chain first visits the items: a ranking."""
    order = np.empty(arrival.size, dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = visiting_order(np.ascontiguousarray(arrival), transitions, random.random(arrival.size), order)
    if not ends:
        raise ValueError("The chain never reaches some of its items: let it move to each of them.")
    return order


def fit_markov_chain(
    counts: ChoiceCounts,
    *,
    starts: int = 2,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-8,
    max_rounds: int = 3000,
    seed: int = 0,
    watch: Watch = unwatched,
    start: MarkovChainModel | None = None,
) -> MarkovChainModel:
    """Fit the Markov chain of highest smoothed likelihood among several starts of an accelerated EM.

    The first start is the chain that equals the fitted logit v, with transitions[i, k] = v[k] / (1 - v[i]); the others
    are random.

    The parameters are those of ``methods.MarkovChain``, with ``tolerance`` for ``tolerance_nats``. Offers without
    choices are left out. ``watch`` is called every few steps, and stops the fit if it returns True. ``start`` is a
    chain fitted to similar counts, which is then the only start.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "no")])
    >>> fit = fit_markov_chain(ChoiceCounts(offers, [50, 30, 20, 80, 20, 30, 70]), smoothing=0.01)
    >>> {item: round(share, 2) for item, share in fit.predict(("tea", "no")).items()}
    {'tea': 0.8, 'no': 0.2}
    """
    number_between("smoothing", smoothing, 1e-9)
    number_between("tolerance", tolerance, 0.0)
    whole_number("max_rounds", max_rounds, least=1)
    data = observed(counts)
    check_start(data, start)
    offers = data.assortments
    problem = _Chain(data, fit_mnl(data).attraction, smoothing)
    generator = np.random.default_rng(seed)
    climbs = []
    for number in range(whole_number("starts", starts, least=1) if start is None else 1):
        noise = np.exp(generator.gumbel(size=len(problem.start))) if number else 1.0
        begin = problem.normalise(problem.start * noise) if start is None else problem.point(start)
        least_gain = tolerance * data.observations
        climbs.append(climb(problem.step, problem.normalise, begin, least_gain, max_rounds, watch, "Markov chain"))
        if climbs[-1].stopped:
            break
    best = max(climbs, key=lambda end: end.heights[-1])
    arrival, transitions = (np.ascontiguousarray(part) for part in problem.parts(best.point))
    if offers.n_items == 1:
        transitions = np.ones((1, 1))  # there is nowhere else to go
    shares = np.empty(offers.n_coordinates)
    chain_shares(offers.indptr, offers.members, arrival, transitions, shares)
    once_absent = int((np.bincount(offers.members, minlength=offers.n_items) < offers.n_offers).sum())
    return MarkovChainModel(
        **fit_facts(data, shares, sum(end.steps for end in climbs), best.converged),
        n_parameters=offers.n_items - 1 + once_absent * max(0, offers.n_items - 2),
        arrival=arrival, transitions=transitions, heights=tuple(best.heights),
    )  # fmt: skip


class _Chain:
    """The EM step of a Markov chain; a point is the arrivals followed by the transitions."""

    def __init__(self, data: ChoiceCounts, logit: Vec, smoothing: float) -> None:
        offers = data.assortments
        self.data = offers.indptr, offers.members, np.ascontiguousarray(data.tallies)
        self.n_items = offers.n_items
        moves = np.tile(logit, (self.n_items, 1))
        np.fill_diagonal(moves, 0.0)
        moves /= np.maximum(moves.sum(axis=1, keepdims=True), 1e-300)
        self.start: Vec = np.concatenate([logit, moves.ravel()])
        self.imagined: Vec = smoothing * self.start
        self.free = self.start > 0.0

    def parts(self, point: Vec) -> tuple[Vec, Vec]:
        """Return the arrivals and the transitions of a point."""
        return point[: self.n_items], point[self.n_items :].reshape(self.n_items, self.n_items)

    def point(self, model: MarkovChainModel) -> Vec:
        """Return the point of a chain over the same items."""
        return np.concatenate([model.arrival, model.transitions.ravel()])

    def normalise(self, point: Vec) -> Vec:
        """Scale the arrivals, and every row of the transitions, to sum to 1."""
        rows = point.reshape(self.n_items + 1, self.n_items)
        scaled: Vec = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        return scaled.ravel()

    def step(self, point: Vec) -> tuple[Vec, float]:
        """Return the next point of EM, and the smoothed likelihood of the current one."""
        expected = self.imagined.copy()
        value = chain_step(*self.data, *self.parts(point), *self.parts(expected))
        value += float(self.imagined[self.free] @ np.log(point[self.free]))
        return self.normalise(expected), value
