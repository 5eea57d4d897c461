"""Choosing an oracle: the fastest exact one for the offers, or a search with a proven bound."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.memory import available_memory
from rankstream._core.threads import thread_count
from rankstream._core.types import Codes
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, Explained, Oracle, TieRule, Ties, finite_costs
from rankstream.oracles.reductions import Reduced, item_bits, reduce
from rankstream.oracles.search.local import SEARCH_ROUNDS, SearchOracle, fewer
from rankstream.oracles.tables.chains import ChainOracle, n_states, used_chains
from rankstream.oracles.tables.dense import DenseOracle, table_bytes
from rankstream.oracles.tables.laminar import LaminarOracle
from rankstream.oracles.tables.lattice import MAX_STATES, LatticeOracle, TooManyUnionsError
from rankstream.oracles.tables.program_kernels import collect_unions

Make = Callable[[Assortments, Ties, int], Oracle]
# where one table takes over from another: benchmarks/oracle.py times all sizes, benchmarks/prices.py chains
MAX_SMALL_OFFERS = 20  # nested offers so few that their unions take no longer
MIN_DENSE_ITEMS = 13  # with fewer, there are too few sets for another table than that of unions
DENSE_ITEMS_PER_THREAD = 26  # one thread takes about half a second for all their sets; twice the threads, one item more
MAX_DENSE_ITEMS = 30  # beyond that, a call takes seconds however many threads there are
MAX_MEMORY_SHARE = 0.5  # of the memory that is free, for a table
MIN_CHAIN_STATES = 2**13  # states of a table for chains that takes less time than the unions of most offers
MAX_CHAIN_STATES = 2**25  # states that one thread runs through in about half a second
MAX_UNIONS_BESIDE_CHAINS = 2**18  # beyond that, writing their program takes longer than making such a table
MAX_UNIONS = 2**20  # beyond that, writing their program takes seconds
MAX_UNIONS_OF_A_QUARTER = 2**16  # of a quarter of the offers: then those of all are not counted
UNION_BYTES = 700  # about what the program of a union of offers takes


class ComponentsOracle(TieRule):
    """One oracle per group of offers without common items; their rankings are concatenated by the tie rule.

    The answer is exact if theirs are; otherwise their slacks add up. An order connects its items.
    """

    def __init__(self, assortments: Assortments, make: Make, ties: Ties = "random", seed: int = 0) -> None:
        super().__init__(assortments, ties, seed)
        self.make = make
        self._parts: list[tuple[Oracle, Codes, Codes]] = []
        reduced = reduce(assortments)
        for component in reduced.components:
            items = set(reduced.items_of(component))
            touched = np.isin(assortments.members, list(items))
            if assortments.order:  # an offer with only one possible choice may have other items, too
                touched &= reduced.entry_at >= 0
            numbers = np.unique(assortments.owner[touched]).tolist()
            if self._universal >= 0:
                items.add(self._universal)
            codes = np.array(sorted(items))
            labels = [assortments.items[code] for code in codes]
            order = [(assortments.items[a], assortments.items[b]) for a, b in assortments.precedence.among(codes)]
            part = Assortments([assortments.offers[number] for number in numbers], labels, order)
            where = np.flatnonzero(np.isin(assortments.owner, numbers))
            self._parts.append((make(part, "first", seed), where, codes))

    @property
    def parts(self) -> list[Oracle]:
        """The oracles of the components."""
        return [oracle for oracle, _, _ in self._parts]

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the groups' cheapest rankings, one after the other."""
        vector = finite_costs(self.assortments, costs)
        above: list[int] = []
        below: list[int] = []
        slack = 0.0
        for oracle, where, codes in self._parts:
            answer = oracle.cheapest(vector[where])
            slack += answer.value - answer.bound
            ranking = codes[answer.ranking].tolist()
            end = ranking.index(self._universal) if self._universal >= 0 else len(ranking)
            above += ranking[:end]
            below += ranking[end + 1 :]
        middle = [self._universal] if self._universal >= 0 else []
        known = {*above, *middle, *below}
        rest = [code for code in range(self.assortments.n_items) if code not in known]
        whole = np.array([*above, *middle, *below, *rest], dtype=np.int64)
        if self.assortments.order:  # items of no group may have to come first, or be the only choice of an offer
            whole = self.assortments.precedence.lift(whole.tolist())
        value = self.keep(vector, whole)
        return Answer(whole, value, value if slack == 0.0 else value - slack)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        kinds = sorted({type(oracle).__name__ for oracle, _, _ in self._parts})
        return f"part by part, with {', '.join(kinds)} ({reduce(self.assortments).explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ComponentsOracle, (self.assortments, self.make, self.ties, self.seed)


def auto(assortments: Assortments, ties: Ties = "random", seed: int = 0, memory: float | None = None) -> Explained:
    """Return the fastest exact oracle for these assortments, or a search with a proven bound; see ``explain``.

    A table of all sets of items may take half of the free memory, or ``memory`` bytes if that is less, and have 2**26
    sets for each thread (at most 2**30). So with more than 26 items, another machine may choose another oracle. To
    avoid that, set ``memory``, or create a ``DenseOracle`` or a ``SearchOracle`` yourself. For an order made of
    chains, such as price levels, the table has a state for the progress in all chains, at most 2**25 of them.

    Examples
    --------
    >>> oracle = auto(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    >>> oracle.explain()
    'exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family)'
    """
    return _choose(assortments, ties, seed, memory)[0]


def explain(assortments: Assortments) -> str:
    """Say which oracle ``auto`` picks for these assortments, and why.

    Examples
    --------
    >>> explain(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    'LatticeOracle: exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family).
    A table of the unions of offers is the quickest: there are at most 131,072.'
    """
    oracle, why = _choose(assortments, "random", 0)
    return f"{type(oracle).__name__}: {oracle.explain()}. {why}."


def _choose(assortments: Assortments, ties: Ties, seed: int, memory: float | None = None) -> tuple[Explained, str]:
    reduced = reduce(assortments)
    laminar = "Any two offers are nested or share no item, and so need no table"
    nested = reduced.is_laminar and not assortments.order
    if nested and assortments.n_offers > MAX_SMALL_OFFERS:
        return LaminarOracle(assortments, ties, seed), laminar
    one_part = len(reduced.components) == 1
    limit = min(MAX_MEMORY_SHARE * available_memory(), np.inf if memory is None else memory)
    most, table, why = _other_table(reduced, limit) if one_part else (MAX_STATES, None, "")
    most = most if memory is None else min(most, int(memory / UNION_BYTES))
    try:
        oracle = LatticeOracle(assortments, ties, seed, most)
        return oracle, f"A table of the unions of offers is the quickest: there are at most {most:,}"
    except TooManyUnionsError:
        if nested:
            return LaminarOracle(assortments, ties, seed), laminar
        if not one_part:
            return ComponentsOracle(assortments, auto, ties, seed), "Parts without a common item are solved one by one"
        why = f"There are more than {most:,} unions of offers, and {why}"
        if table is not None:
            return table(assortments, ties, seed), why
        return SearchOracle(assortments, ties, seed, rounds=fewer(SEARCH_ROUNDS, assortments)), why


def _other_table(reduced: Reduced, memory_limit: float) -> tuple[int, type[ChainOracle | DenseOracle] | None, str]:
    """Return how many unions of offers are too many, the table to use then, if any, and the reason."""
    assortments = reduced.assortments
    most_unions = max(int(memory_limit / UNION_BYTES), 1024)
    if assortments.order:
        states = 0 if assortments.chains is None else n_states(used_chains(reduced))
        if MIN_CHAIN_STATES <= states <= MAX_CHAIN_STATES and 8 * states <= memory_limit:
            most = min(states // 6, MAX_UNIONS_BESIDE_CHAINS, most_unions)
            return most, ChainOracle, "the order is made of chains"
        rest = f"a table of its chains would have {states:,} states" if states else "the order is not made of chains"
        return MAX_STATES, None, rest
    _, offer_sets, n_items = item_bits(assortments, reduced.no_choice_code)
    refused = _no_table(n_items, memory_limit) if n_items >= MIN_DENSE_ITEMS else ""
    if refused:
        return MAX_STATES, None, refused
    most = MAX_STATES
    if n_items >= MIN_DENSE_ITEMS:
        most = min(2**n_items // 6, MAX_UNIONS, most_unions)
        most = most if most <= MAX_UNIONS_OF_A_QUARTER or _few_unions(offer_sets) else MAX_UNIONS_OF_A_QUARTER
    table = f"{_gigabytes(n_items)} of the {available_memory() / 1e9:.3g} GB of memory that are free"
    return most, DenseOracle, f"a table of all sets of items takes {table}"


def proving_table(assortments: Assortments, ties: Ties = "random", seed: int = 0) -> DenseOracle | None:
    """Return a table of all sets of items that is too slow for every round of a fit, but useful for a proof.

    It has single precision and at most 30 items besides no-choice (4.3 GB, some seconds per call). Returns None if
    half of the free memory is too little, or if the items have an order.

    >>> table = proving_table(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing")]))
    >>> table.precision, table.n_states
    ('single', 128)
    """
    if assortments.order:
        return None
    n_items = item_bits(assortments, reduce(assortments).no_choice_code)[2]
    memory_limit = MAX_MEMORY_SHARE * available_memory()
    if n_items > MAX_DENSE_ITEMS or table_bytes(n_items, assortments.n_items, "single") > memory_limit:
        return None
    return DenseOracle(assortments, ties, seed, memory=memory_limit, precision="single")


def _few_unions(offer_sets: list[int]) -> bool:
    """Whether the smallest quarter of the offers has few unions; if not, counting all unions takes seconds."""
    small_first = np.array(sorted(set(offer_sets), key=int.bit_count), dtype=np.uint64)
    return collect_unions(small_first[: small_first.size // 4], np.empty(MAX_UNIONS_OF_A_QUARTER, dtype=np.uint64)) >= 0


def _gigabytes(n_items: int) -> str:
    return f"{8 * 2**n_items / 1e9:.3g} GB"


def _no_table(n_items: int, memory_limit: float) -> str:
    threads = thread_count()
    if n_items > MAX_DENSE_ITEMS:
        return f"a table of all sets of {n_items} items takes too long: {MAX_DENSE_ITEMS} is the most"
    if 8 * 2**n_items > memory_limit:
        needed = f"needs {_gigabytes(n_items)} of memory, and may take at most {memory_limit / 1e9:.3g} GB"
        return f"a table of all sets of {n_items} items {needed}"
    if 2**n_items > threads * 2**DENSE_ITEMS_PER_THREAD:
        return f"all sets of {n_items} items are more than 2**{DENSE_ITEMS_PER_THREAD} for each thread (of {threads})"
    return ""
