"""Oracles without a dynamic program: iterated local search with a bound by cuts, and a quick search."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Vec, number_between, whole_number
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds.cuts import least_cost_bound
from rankstream.oracles.protocol import TIE_RULES, Answer, Oracle, TieRule, Ties, finite_costs, meet
from rankstream.oracles.reductions import reduce
from rankstream.oracles.search import local_kernels as search_kernels
from rankstream.oracles.search.local_kernels import Offers
from rankstream.oracles.tie_kernels import hashed

# tuned on other instances than those that benchmarks/quality.py prints
CHUNK_ROUNDS = 10  # between two looks at the clock
SEARCH_ROUNDS, HURRIED_ROUNDS = 250, 10  # of a call, and of one during the rounds of a fit
LARGE_COORDINATES = 50_000  # coordinates from which on a search has fewer rounds
MAX_POOL_RANKINGS = 256  # earlier answers to begin from: each is priced in every call
SHORT_SEARCHES, SHORT_ROUNDS, SHORT_NOISE = 16, 10, 0.3  # short ones begin near the best, with less noise
SHORT_SEARCHES_IF_LARGE = 8  # short searches at once on a large problem
MIN_PROGRESS = 1e-9  # of all costs: by less, no ranking counts as cheaper


class SearchOracle(TieRule):
    """Iterated local search that inserts items at their best positions, warm started from its earlier answers.

    An answer is exact if its bound (``bounds.cuts.least_cost_bound``) equals its value. Equal costs in a row have the
    same answer. With an order, only rankings that respect it are searched; the bound ignores the order and still holds.

    Parameters
    ----------
    assortments : Assortments
        The offers.
    ties : "random", "first" or "last"
        Which of equally good positions an item takes, and which ranking is returned for a vertex (``TieRule``).
    seed : int
        Seed of the search and of ties.
    budget : float, optional
        Time limit of a search in seconds. Without it, the answer is the same on every machine.
    rounds : int
        Rounds of a call, from the best ranking in the pool of earlier answers.
    sweeps : int
        Rounds of cuts for the bound, not included in the budget; with 0, every offer takes its cheapest item.

    Examples
    --------
    >>> oracle = SearchOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.value, answer.exact
    (-2.0, True)
    """

    def __init__(
        self,
        assortments: Assortments,
        ties: Ties = "random",
        seed: int = 0,
        budget: float | None = None,
        rounds: int = SEARCH_ROUNDS,
        sweeps: int = 3,
    ) -> None:
        super().__init__(assortments, ties, seed)
        self.budget = None if budget is None else number_between("budget", budget, 0.0)
        self.rounds = whole_number("rounds", rounds, least=1)
        self.sweeps = whole_number("sweeps", sweeps)
        self._offers = index_offers(assortments)
        self._pool: Codes = assortments.precedence.sequence[None, :].copy()  # all items as they are, without an order
        self._places = self._pool.copy()
        self._last: tuple[bytes, Answer] | None = None

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the cheapest ranking that the search finds, its cost, and a proven bound."""
        vector = finite_costs(self.assortments, costs)
        key = vector.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        ranking = self.search(vector)
        value = self.keep(vector, ranking)
        answer = Answer(ranking, value, meet(least_cost_bound(self.assortments, vector, self.sweeps), value, vector))
        ranking.flags.writeable = False
        self._last = key, answer
        return answer

    def search(self, costs: Vec) -> Codes:
        """Return the best ranking within the rounds and the budget, and add it to the pool."""
        stop = np.inf if self.budget is None else perf_counter() + self.budget
        values = search_kernels.pool_costs(costs, self._offers, self._places)
        best: Codes = self._pool[int(values.argmin())].copy()
        current, held, stale, done = best.copy(), np.inf, 0, 0
        draw = np.uint64(self.seed)
        while done < self.rounds and (not done or perf_counter() < stop):
            turns = min(CHUNK_ROUNDS, self.rounds - done)
            draw = np.uint64(hashed(draw, np.uint64(done)))
            start = costs, self._offers, self._universal, best, current, held, stale, TIE_RULES[self.ties]
            held, stale = search_kernels.search(*start, draw, turns, 1.0, -np.inf)
            done += turns
        if not (self._pool == best).all(axis=1).any():
            self._pool = np.vstack([self._pool, best])[-MAX_POOL_RANKINGS:]
            self._places = np.argsort(self._pool, axis=1)
        return best

    def around(self, costs: Vec, rankings: Codes, turn: int) -> Codes:
        """Run short searches from some of these rankings, the cheapest among them; return the results, cheapest first.

        Column generation needs many rankings near the least cost rather than a single best one, and those in use are
        near it. So each search starts at one of them and ends once it finds a ranking cheaper than all of them. That
        is easy at first, when new weights help most. ``turn`` seeds the starts and the searches.
        """
        random = np.random.default_rng([self.seed, turn])
        rule, offers, shape = TIE_RULES[self.ties], self._offers, self.assortments
        searches = SHORT_SEARCHES_IF_LARGE if shape.n_coordinates > LARGE_COORDINATES else SHORT_SEARCHES
        values = search_kernels.pool_costs(costs, offers, np.argsort(rankings, axis=1))
        starts = random.choice(len(rankings), searches, replace=len(rankings) < searches)
        starts[0] = values.argmin()
        results: Codes = rankings[starts]
        enough = float(values.min()) - MIN_PROGRESS * float(np.abs(costs).sum())
        for best in results:
            draw = np.uint64(random.integers(2**62))
            start = costs, offers, self._universal, best, best.copy(), np.inf, 0
            search_kernels.search(*start, rule, draw, fewer(SHORT_ROUNDS, shape), SHORT_NOISE, enough)
        results = np.unique(results, axis=0)
        values = search_kernels.pool_costs(costs, offers, np.argsort(results, axis=1))
        return results[np.argsort(values, kind="stable")]

    def memory(self) -> dict[str, Any]:
        """Return what it learned from earlier calls, as arrays: a copy with it gives the same answers."""
        last = {}
        if self._last is not None:
            key, answer = self._last
            numbers = np.array([answer.value, answer.bound])
            last = {"asked": np.frombuffer(key), "answered": answer.ranking, "numbers": numbers}
        return {"pool": self._pool, **last}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        self._pool = np.array(memory["pool"], dtype=np.int64)
        self.assortments.precedence.check(self._pool)
        self._places = np.argsort(self._pool, axis=1)
        self._last = None
        if "asked" in memory:
            value, bound = memory["numbers"].tolist()
            self._last = memory["asked"].tobytes(), Answer(memory["answered"], value, bound)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        return f"by local search, with a proven bound from parts of the items ({reduce(self.assortments).explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = (self.ties, self.seed, self.budget, self.rounds, self.sweeps)
        return SearchOracle, (self.assortments, *options)


@contextmanager
def hurried(oracle: Oracle) -> Iterator[None]:
    """Make a search short and skip its bound, for the rounds of a fit: more rounds fit in the same time.

    Certificates are computed afterwards, at full effort. Other oracles are left as they are.
    """
    if not isinstance(oracle, SearchOracle):
        yield
        return
    before = oracle.rounds, oracle.sweeps
    oracle.rounds, oracle.sweeps = min(oracle.rounds, fewer(HURRIED_ROUNDS, oracle.assortments)), 0
    try:
        yield
    finally:
        oracle.rounds, oracle.sweeps = before


def fewer(rounds: int, assortments: Assortments) -> int:
    """Reduce the rounds of a search on a large problem to about the time they take on one of 50,000 coordinates.

    >>> fewer(250, Assortments([("tea", "pie")]))
    250
    """
    return max(1, int(rounds * min(1.0, LARGE_COORDINATES / assortments.n_coordinates) ** 2))


def index_offers(assortments: Assortments) -> Offers:
    """Return the offers with the coordinates of each item, and the order."""
    members, n_items = assortments.members, assortments.n_items
    listed = np.argsort(members.astype(np.min_scalar_type(n_items)), kind="stable")  # one pass for numbers of 16 bits
    begins = np.append(0, np.cumsum(np.bincount(members, minlength=n_items)))
    return Offers(assortments.indptr, members, assortments.owner, begins, listed, assortments.precedence.pairs)


LOOKS_PER_COORDINATE, MIN_LOOKS = 6, 100_000  # a call may read as many coordinates, whichever is more


class QuickOracle(TieRule):
    """A quick local search that inserts items at their best positions.

    Creating and calling it takes a few passes over the coordinates, however the offers overlap. The bound lets every
    offer choose its cheapest item: it is valid, but weak if offers disagree. Calls do not change it; only ``follow``
    lets the next search start from the last answer, and with another item. Every ranking respects the order, if any.

    Parameters
    ----------
    assortments, ties, seed : as for ``SearchOracle``
        The offers, the rule for equally good positions, and the seed of ties.
    turn : int
        Number of answers followed so far, which determines the first item to insert.
    start : array, optional
        The ranking to start from; by default the items by code, as far as the order allows.

    >>> oracle = QuickOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.value, answer.bound
    (-2.0, -2.0)
    """

    def __init__(
        self, assortments: Assortments, ties: Ties = "random", seed: int = 0, turn: int = 0, start: Codes | None = None
    ) -> None:
        super().__init__(assortments, ties, seed)
        self.turn = turn
        self.start: Codes = assortments.precedence.sequence.copy() if start is None else start
        assortments.precedence.check(np.atleast_2d(self.start))
        self._answered = self.start
        self._offers = index_offers(assortments)
        self._sizes = np.diff(assortments.indptr)

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the result of the search, its cost, and the sum of the offers' least costs."""
        vector, offers = finite_costs(self.assortments, costs), self.assortments
        candidates = np.vstack([self.start, self._sorted(vector)])
        values = search_kernels.pool_costs(vector, self._offers, np.argsort(candidates, axis=1))
        order = np.ascontiguousarray(candidates[int(values.argmin())])
        seed, first = np.uint64(hashed(np.uint64(self.seed), np.uint64(self.turn))), self._first()
        work = max(MIN_LOOKS, LOOKS_PER_COORDINATE * offers.n_coordinates)
        search_kernels.improve(vector, self._offers, order, TIE_RULES[self.ties], seed, first, work)
        value = float(search_kernels.pool_costs(vector, self._offers, np.argsort(order)[None, :])[0])
        self._answered = order
        return Answer(order, value, meet(least_cost_bound(offers, vector, 0), value, vector))

    def _sorted(self, costs: Vec) -> Codes:
        """Return the items by their cost above the mean of their offers, cheapest first, as far as the order allows."""
        offers = self.assortments
        means = np.add.reduceat(costs, offers.indptr[:-1]) / self._sizes
        excess = np.bincount(offers.members, costs - means[offers.owner], offers.n_items)
        ranking = np.argsort(excess, kind="stable")
        if offers.order:
            search_kernels.put_in_order(self._offers.pairs, ranking, np.argsort(ranking))
        return ranking

    def _first(self) -> int:
        """Return the first item to insert; it varies, because a call may not reach all items."""
        return int(hashed(np.uint64(self.turn), np.uint64(1)) >> np.uint64(11)) % self.assortments.n_items

    def follow(self) -> None:
        """Start the next search from the last answer."""
        self.start, self.turn = self._answered, self.turn + 1

    def memory(self) -> dict[str, Any]:
        """Return its state as arrays: a copy with it gives the same answers."""
        return {"start": self.start}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        start = np.array(memory["start"]).astype(np.int64, casting="same_kind")
        if start.shape != self.start.shape or not np.array_equal(np.sort(start), np.arange(start.size)):
            raise ValueError("a ranking of its oracle does not order all items")
        self.assortments.precedence.check(start[None, :])
        self.start = start

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        number = self.assortments.n_coordinates
        return f"by a search of {LOOKS_PER_COORDINATE} steps for each of {number:,} coordinates, with a wide bound"

    def __reduce__(self) -> tuple[Any, ...]:
        return QuickOracle, (self.assortments, self.ties, self.seed, self.turn, self.start)
