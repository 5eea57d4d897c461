"""The default exact oracle: a dynamic program over unions of offers, laid out as one flat program."""

from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Bits, Codes, Vec, Words
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import TIE_RULES, Answer, TableOracle, Ties, check_costs
from rankstream.oracles.reductions import Reduced, reduce
from rankstream.oracles.tables import lattice_kernels, program_kernels

MAX_STATES = 2**17  # unions whose program is written in about a second (benchmarks/oracle.py)
NOT_FINITE = "The costs contain NaN or infinity: every cost must be a finite number."
Tables: TypeAlias = tuple[Codes, Codes, Words, Vec, Codes]  # numbers, shape, program, and space to work in
UNFORCED = np.zeros(0, dtype=np.int64)


class TooManyUnionsError(ValueError):
    """The offers have more unions than a table should have rows."""


class LatticeOracle(TableOracle):
    """The dynamic program over unions of offers.

    Ranking from the top, an item no longer matters once all of its offers contain a ranked item. So the only different
    sets of unranked items are unions of offers (without no-choice), a fraction of all subsets. They are enumerated
    once, and a call is a single pass over their transitions. Parts without common items are solved separately. With an
    order, an offer includes all items that must come after one of its own, and an item can be ranked once all items
    that must come before it are. For ties see ``TieRule``.

    Examples
    --------
    >>> oracle = LatticeOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.ranking[:2], answer.value, answer.exact
    (array([3, 0]), -2.0, True)
    """

    def __init__(
        self, assortments: Assortments, ties: Ties = "random", seed: int = 0, most_states: int = MAX_STATES
    ) -> None:
        super().__init__(assortments, ties, seed)
        self.most_states = most_states
        self.reduced = reduce(assortments)
        self._lay_out(*_programs(self.reduced, most_states))

    def _lay_out(self, program: Words, tops: Codes, first: Codes, items: Codes, following: Codes) -> None:
        """Pack the arrays, so that a call passes few of them."""
        reduced, offers = self.reduced, self.assortments
        self.n_states, self.n_transitions = first.size - 1, items.size
        sizes = (offers.n_offers, tops.size, self.n_states, items.size, reduced.n_entries)
        pairs = offers.precedence.pairs
        settings = (self._universal, TIE_RULES[self.ties], self.seed, len(pairs))
        numbers = np.array([*sizes, *settings], dtype=np.int64)
        ways = (tops, first, items, following, pairs.ravel())
        shape = (offers.indptr, offers.members, reduced.entry_at, reduced.base_at, *ways)
        work = np.zeros(reduced.n_entries + 1 + items.size + self.n_states)
        space = np.zeros((5 + offers.n_items, max(offers.n_items, offers.n_offers)), dtype=np.int64)
        self._lock = Lock()
        self.tables: Tables = numbers, np.concatenate(shape), program, work, space

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the cheapest ranking, proven: bound and value are equal."""
        vector = check_costs(self.assortments, costs)
        ranking = np.empty(self.assortments.n_items, np.int64)
        value = lattice_kernels.cheapest_on_lattice(vector, *self.tables, UNFORCED, ranking)
        if value != value:
            raise ValueError(NOT_FINITE)
        return Answer(ranking, value, value)

    def beginning_with(self, first: list[tuple[int, ...]], costs: ArrayLike) -> list[Answer]:
        """Run the program once and read the best completion of every beginning from its tables."""
        vector = check_costs(self.assortments, costs)
        answers = []
        with self._lock:  # the tables must stay those of the first call
            bound = self.cheapest(vector).bound
            tables = (*self.tables[:2], self.tables[2][:0], *self.tables[3:])
            for beginning in first:
                ranking, forced = np.empty(self.assortments.n_items, np.int64), np.array(beginning, np.int64)
                value = lattice_kernels.cheapest_on_lattice(vector, *tables, forced, ranking)
                answers.append(Answer(ranking, value, min(value, bound)))
        return answers

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        return f"exact, by {self.n_states:,} unions of offers ({self.reduced.explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LatticeOracle, (self.assortments, self.ties, self.seed, self.most_states)


def unions(sets: Bits, most: int) -> Bits:
    """Return all unions of the sets, with the empty one, ascending; raise an error if there are more than ``most``."""
    different = np.unique(sets)
    small_first = different[np.argsort(np.bitwise_count(different), kind="stable")]
    capacity, count = 1, -1
    while count < 0 and capacity < most:
        capacity = min(max(1024, 8 * capacity), most)  # most programs are small, and memory has to be cleared
        states = np.empty(capacity, dtype=np.uint64)
        count = program_kernels.collect_unions(small_first, states)
    if count < 0:
        raise TooManyUnionsError(f"There are more than {most:,} unions of offers: use another oracle (oracles.auto).")
    return np.sort(states[:count])


def holders(sets: Bits, n_items: int) -> Bits:
    """Return for every item the offers that contain it, a bit for each, in words of 64."""
    inside = np.zeros((n_items, -(-sets.size // 64) * 64), dtype=np.uint8)
    inside[:, : sets.size] = sets >> np.arange(n_items, dtype=np.uint64)[:, np.newaxis] & np.uint64(1)
    # bytes in ascending order make words whose lowest byte comes first
    return np.packbits(inside, axis=1, bitorder="little").view(np.dtype("<u8")).astype(np.uint64)


class _Part(NamedTuple):
    """The items of a component, and its offers as bits, without (``sets``) and with (``closed``) what must follow them.

    ``entry_of`` has the entries of each offer and item (-1: none), ``above[i]`` the items that must come before item i.
    """

    codes: Codes
    sets: Bits
    closed: Bits
    entry_of: Codes
    above: Bits


def _part(reduced: Reduced, component: tuple[int, ...], starts: Codes) -> _Part:
    offers = [reduced.offers[number] for number in component]
    sizes = np.array([len(offer) for offer in offers])
    members = np.fromiter(chain.from_iterable(offers), dtype=np.int64, count=int(sizes.sum()))
    ordered, precedence = bool(reduced.assortments.order), reduced.assortments.precedence
    codes = np.array(reduced.items_of(component), dtype=np.int64) if ordered else np.unique(members)
    if codes.size > 64:
        raise TooManyUnionsError(f"{codes.size} connected items are too many for unions of offers: use oracles.auto.")
    places, ends = np.searchsorted(codes, members), np.cumsum(sizes)
    sets = np.bitwise_or.reduceat(np.uint64(1) << places.astype(np.uint64), ends - sizes)
    entry_of = np.full((len(offers), codes.size), -1, dtype=np.int64)
    own = np.arange(members.size) - np.repeat(ends - sizes, sizes)
    entry_of[np.repeat(np.arange(len(offers)), sizes), places] = np.repeat(starts[list(component)], sizes) + own
    if not ordered:
        return _Part(codes, sets, sets, entry_of, np.zeros(0, dtype=np.uint64))
    bits = np.uint64(1) << np.arange(codes.size, dtype=np.uint64)
    above = precedence.above[np.ix_(codes, codes)]
    closed = [np.bitwise_or.reduce(bits[np.searchsorted(codes, reduced.closed[number])]) for number in component]
    before: Bits = np.where(above, bits[:, np.newaxis], np.uint64(0))
    return _Part(codes, sets, np.array(closed), entry_of, np.bitwise_or.reduce(before, axis=0))


def _moves(states: Bits, above: Bits) -> Bits:
    """Return the items of each state that can come next: those without an item of the state above them."""
    if not above.size:
        return states
    moves = np.zeros_like(states)
    for item, before in enumerate(above):
        moves |= np.where(states & before, np.uint64(0), states & (np.uint64(1) << np.uint64(item)))
    return moves


def _programs(reduced: Reduced, most: int) -> tuple[Words, Codes, Codes, Codes, Codes]:
    """Return the concatenated programs of all components, their full states, and the states' transitions."""
    starts = np.cumsum([0, *(len(offer) for offer in reduced.offers)])
    nothing, words = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint32)
    programs, tops, firsts, items, following = [words], [], [nothing], [nothing], [nothing]
    n_states = n_transitions = 0
    for component in reduced.components:
        part = _part(reduced, component, starts)
        codes, states = part.codes, unions(part.closed, most - n_states)
        moves = _moves(states, part.above)
        first = np.zeros(states.size + 1, dtype=np.int64)
        first[0] = n_transitions
        holding = holders(part.sets, codes.size)
        here, there = np.zeros((2, int(np.bitwise_count(moves).sum())), dtype=np.int64)
        inside = np.zeros((states.size, holding.shape[1]), dtype=np.uint64)
        plan = inside, there, np.zeros(here.size, dtype=np.int8)
        after = np.zeros(codes.size, dtype=np.uint64)
        length = program_kernels.plan_program(states, moves, part.closed, holding, after, *plan)
        program = np.zeros(length, dtype=np.uint32)
        before = reduced.n_entries, n_states
        program_kernels.write_program(moves, holding, *plan, part.entry_of, codes, *before, first, program, here)
        programs.append(program)
        tops.append(n_states + states.size - 1)
        firsts.append(first[:-1])
        items.append(here)
        following.append(there)
        n_states += states.size
        n_transitions += here.size
    first = np.append(np.concatenate(firsts), n_transitions)
    return (
        np.concatenate(programs),
        np.array(tops, dtype=np.int64),
        first,
        np.concatenate(items),
        np.concatenate(following),
    )
