"""next_offer: the offer to try next, to learn and to earn."""

import warnings
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, Unpack

import numpy as np

from rankstream._core import Label, Watch, number_between, unwatched, whole_number
from rankstream.data import Attributes, ChoiceCounts, contradiction, observed
from rankstream.data.attributes import Rows, read_attributes
from rankstream.decide.best import decide
from rankstream.decide.decision import Decision
from rankstream.decide.engines.tables import most_decided, scan, table_of
from rankstream.decide.offer_values import tolerance_of, values, verify_feasible, verify_order
from rankstream.decide.problem.items import Numbers
from rankstream.decide.problem.offers import Constraints, OfferProblem, constrained, make_problem, some_offer
from rankstream.estimation.methods import Method, make
from rankstream.estimation.task import Task
from rankstream.models.entropy.ensemble import Stack, fit_quick_stack
from rankstream.models.entropy.fit import EntropyFit, fit_max_entropy

How = Literal["thompson", "greedy", "ucb"]
FIT_GAP_NATS = 1e-2
"""Accuracy of a fit, in nats: far below the noise of the counts; an estimate."""
PSEUDO_CHOICES = 0.5  # imaginary choices of every item of an offer when its shares are redrawn: Jeffreys' prior


@dataclass(frozen=True, eq=False)
class NextOffer:
    """The offer to show to the next customers; pass it to the next call as ``start`` for a warm start.

    Attributes
    ----------
    offer, menu : tuple of items
        The offer without the no-purchase option, and with it.
    how : str
        How it was chosen, or that it is a random first offer.
    untried : tuple of items
        Its items that were never offered before.
    decision : Decision or None
        The best offer by the fitted model; None before any data.
    guides : Stack or None
        The fitted guides of the prior, for the next call.
    fit : EntropyFit or None
        The last fit by maximum entropy, for the next call.
    """

    offer: tuple[Label, ...]
    menu: tuple[Label, ...]
    how: str
    decision: Decision | None = None
    guides: Stack | None = None
    fit: EntropyFit | None = None
    untried: tuple[Label, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        decision = None if self.decision is None else self.decision.to_json()
        untried = [str(item) for item in self.untried]
        return {"offer": [str(item) for item in self.offer], "how": self.how, "decision": decision, "untried": untried}

    def __str__(self) -> str:
        items, new = (", ".join(map(str, part)) for part in (self.offer, self.untried))
        test = f"\nNever offered before, so this is a test: {new}." if new else ""
        return f"Offer next: {items or 'nothing'}{f' ({self.how})' if self.decision is None else ''}{test}"


@constrained
def next_offer(
    counts: Any,
    margins: Numbers | None = None,
    how: How = "thompson",
    *,
    method: str | Method = "max-entropy",
    redraws: int = 10,
    optimism: float = 1.0,
    budget: float = 10.0,
    seed: int = 0,
    start: NextOffer | None = None,
    watch: Watch | None = None,
    attributes: Attributes | Rows | None = None,
    **constraints: Unpack[Constraints],
) -> NextOffer:
    """Choose the offer to show to the next batch of customers.

    Call it once for every batch, not for every customer, each time with another seed. Then count the choices from its
    ``menu`` (``counts.extend([menu])`` if the offer is new).

    Parameters
    ----------
    counts : ChoiceCounts or Live
        The choices so far.
    margins, costs, at_most, at_least, must, never, requires, excludes, listing_costs, space, capacity : optional
        As for ``best_offer``.
    ladders, present, changes, no_choice : optional
        As for ``best_offer``.
    how : "thompson", "greedy" or "ucb"
        "thompson" takes the best offer by a model fitted to counts redrawn from a Dirichlet, so that offers are tried
        as often as they may be the best; "greedy" by the model fitted to the counts; "ucb" by that model's value plus
        ``optimism`` standard deviations over ``redraws`` redrawn ones.
    method : str or settings
        The method of the fit. Maximum entropy continues from ``start``.
    redraws : int
        Number of models that "ucb" draws.
    optimism : float
        Number of standard deviations that "ucb" adds.
    budget : float
        Time limit of the search, in seconds.
    seed : int
        Random seed of the redrawn counts.
    start : NextOffer, optional
        The result of the previous call.
    watch : callable, optional
        Called with the progress; returning True ends fits and search with the best offer so far.
    attributes : Attributes or mapping, optional
        Attributes of all items (``read_attributes``), for maximum entropy. Items that no offer had yet are candidates:
        what they are worth is drawn with the error of such predictions, so that those that may be good are tried.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")]), [90, 10, 20, 80])
    >>> found = next_offer(counts, {"tea": 1.0, "pie": 3.0}, "greedy", at_most=1)
    >>> found.menu
    ('tea', 'no')
    """
    if how not in ("thompson", "greedy", "ucb"):
        raise ValueError(f"Unknown way {how!r} to choose the next offer: use 'thompson', 'greedy' or 'ucb'.")
    whole_number("redraws", redraws, least=2)
    number_between("optimism", optimism, 0.0)
    mask = counts if isinstance(counts, ChoiceCounts) else getattr(counts, "counts", None)
    if not isinstance(mask, ChoiceCounts):
        raise ValueError("There are no counts to learn from: give ChoiceCounts, or a Live that has observed choices.")
    offers = mask.assortments
    table = None if attributes is None else read_attributes(attributes)
    if table is not None and method != "max-entropy":
        raise ValueError(f"Attributes need the method 'max-entropy', not {method!r}: leave out one of them.")
    new = {} if table is None else table.without(offers.items)
    everywhere = None if offers.no_choice_code is None else offers.items[offers.no_choice_code]
    items = SimpleNamespace(items=(*offers.items, *new), no_choice=everywhere)  # before there is a model
    problem = make_problem(items, margins, **constraints)
    random = np.random.default_rng(whole_number("seed", seed))
    if not mask.observations:
        return _at_random(problem, random, new)
    if sentence := contradiction(mask):
        warnings.warn(sentence, stacklevel=2)
    learner = _Learner(observed(mask), method, seed, start, watch or unwatched, table, new)
    if how == "ucb":
        return _optimistic(problem, learner, redraws, optimism, random, budget)
    model = learner.redraw(random) if how == "thompson" else learner.fit(learner.counts)
    found = decide(replace(problem, model=model), 1, budget, seed, watch)
    return NextOffer(found.offer, found.menu, how, found, learner.guides, learner.last, _untried(found.offer, new))


def redrawn(counts: ChoiceCounts, random: np.random.Generator) -> ChoiceCounts:
    """Redraw the shares of every offer from the Dirichlet posterior of its tallies, with as many choices."""
    offers, tallies = counts.assortments, counts.tallies
    out = np.zeros(tallies.size)
    for number, total in enumerate(counts.totals.tolist()):
        part = slice(offers.indptr[number], offers.indptr[number + 1])
        out[part] = total * random.dirichlet(tallies[part] + PSEUDO_CHOICES)
    return ChoiceCounts(offers, out)


class _Learner:
    """Fits models to counts and to redrawn ones, each starting from the previous fit; they have ``new`` items, too."""

    def __init__(
        self,
        counts: ChoiceCounts,
        method: str | Method,
        seed: int,
        start: NextOffer | None,
        watch: Watch,
        table: Attributes | None = None,
        new: Rows | None = None,
    ) -> None:
        self.table, self.new = table, new or {}
        self.counts, self.seed, self.watch = counts, seed, watch
        self.dense = method == "max-entropy"
        self.method = None if self.dense else make(method)
        same = start is not None and start.fit is not None and start.fit.model.items == counts.assortments.items
        self.guides = start.guides if start is not None and same else None
        self.last = start.fit if start is not None and same else None
        self.first: EntropyFit | None = None
        self.fit_entropy = partial(fit_max_entropy, tolerance=FIT_GAP_NATS, seed=seed, watch=watch)

    def redraw(self, random: np.random.Generator) -> Any:
        """Fit a model to redrawn counts; what new items are worth is drawn, too."""
        return self.fit(redrawn(self.counts, random), random)

    def fit(self, counts: ChoiceCounts, random: np.random.Generator | None = None) -> Any:
        """Fit a model to these counts."""
        model = self._fit(counts)
        return model.with_items(self.new, random) if self.new else model

    def _fit(self, counts: ChoiceCounts) -> Any:
        if not self.dense:
            if self.method is None:
                raise ValueError("The method 'auto' changes with the data: choose a fixed one, such as 'max-entropy'.")
            return self.method.model(Task(counts.assortments, counts, self.seed, self.watch))
        if counts.assortments.order or self.table is not None:
            self.last = self._held_out(counts)
            return self.last.model
        if self.guides is None:
            self.guides = fit_quick_stack(counts, self.seed, watch=self.watch)
        else:
            self.guides = self.guides.refit(counts, self.seed, watch=self.watch)
        self.last = self.fit_entropy(counts, self.guides.prior, start=self.last)
        return self.last.model

    def _held_out(self, counts: ChoiceCounts) -> EntropyFit:
        """Fit with price levels or attributes: guides are weighted on held-out offers once for all redraws."""
        if self.first is None or self.first.stack is None:
            self.first = self.fit_entropy(counts, attributes=self.table)
            return self.first
        stack: Any = self.first.stack
        prior = stack.prior if self.table is None else stack.refit(counts, self.seed, watch=self.watch)
        return self.fit_entropy(counts, prior, trust=self.first.trust, start=self.last, attributes=self.table)


def _optimistic(
    problem: OfferProblem, learner: _Learner, redraws: int, optimism: float, random: np.random.Generator, budget: float
) -> NextOffer:
    """Return the offer with the highest value plus ``optimism`` standard deviations.

    If ``watch`` stops it, there are fewer redraws; with fewer than two, nothing is added.
    """
    model = learner.fit(learner.counts)
    if too_many := most_decided(replace(problem, model=model)):
        raise ValueError(f"'ucb' can decide about {too_many}: use 'thompson', or never= for some.")
    middle = table_of(replace(problem, model=model))
    sums, squares, done = np.zeros_like(middle.values), np.zeros_like(middle.values), 0
    while done < redraws and not learner.watch(f"redrawn {done} of {redraws} times"):
        drawn = table_of(replace(problem, model=learner.redraw(random))).values
        sums += drawn
        squares += drawn**2
        done += 1
    spread = np.sqrt(np.maximum(squares - sums**2 / max(1, done), 0.0) / max(1, done - 1))
    best = scan(replace(middle, values=middle.values + optimism * spread), problem)
    mask, fitted = best.offers[0], replace(problem, model=model)
    verify_feasible(problem, [mask], "ucb")
    plain = float(values(fitted, [mask])[0])
    verify_order(plain, best.values[0], tolerance_of(problem), "the value, and the value with optimism", "ucb")
    found = decide(fitted, 1, budget, learner.seed, learner.watch)
    offer = problem.offer(mask)
    untried = _untried(offer, learner.new)
    return NextOffer(offer, problem.labels(mask), "ucb", found, learner.guides, learner.last, untried)


def _untried(offer: tuple[Label, ...], new: Rows) -> tuple[Label, ...]:
    return tuple(item for item in offer if item in new)


def _at_random(problem: OfferProblem, random: np.random.Generator, new: Rows) -> NextOffer:
    """Return a first offer, before any data: items are added in random order while that is feasible."""
    mask = some_offer(problem)
    for code in random.permutation(problem.free).tolist():
        more = mask.copy()
        more[code] = True
        if problem.is_feasible(more):
            mask = more
    verify_feasible(problem, [mask], "a first offer at random")
    offer = problem.offer(mask)
    return NextOffer(offer, problem.labels(mask), "at random, before any data", untried=_untried(offer, new))
