"""Which oracle: the fastest exact one for the offers at hand, or beyond those a search with a proven bound."""

import numpy as np

from rankstream._core.memory import available_memory
from rankstream._core.threads import thread_count
from rankstream.data.assortments import Assortments
from rankstream.oracles.chains import ChainOracle, n_states, used_chains
from rankstream.oracles.components import ComponentsOracle
from rankstream.oracles.dense import DenseOracle, table_bytes
from rankstream.oracles.laminar import LaminarOracle
from rankstream.oracles.lattice import MOST_STATES, LatticeOracle, TooManyUnionsError
from rankstream.oracles.program_kernels import collect_unions
from rankstream.oracles.protocol import Explained
from rankstream.oracles.reductions import Reduced, item_bits, reduce
from rankstream.oracles.search import ROUNDS, SearchOracle, fewer
from rankstream.oracles.ties import Ties

SMALL = 20
DENSE_FROM = 13
DENSE_TO = 26  # items whose sets one thread runs through in about half a second; twice the threads, one item more
DENSE_MOST = 30  # beyond that, a call takes seconds however many threads there are
SHARE = 0.5  # of the memory that is free, for a table
CHAINS_FROM = 2**13  # states of a table for chains that takes less time than the unions of most offers
CHAINS_TO = 2**25  # states that one thread runs through in about half a second
CHAIN_UNIONS = 2**18  # beyond that, writing their program takes longer than making such a table
MOST_UNIONS = 2**20  # beyond that, writing their program takes seconds
MANY_UNIONS = 2**16  # of a quarter of the offers: then those of all are not counted
UNION_BYTES = 700  # about what the program of a union of offers takes


def auto(assortments: Assortments, ties: Ties = "random", seed: int = 0) -> Explained:
    """The fastest exact oracle for these assortments, or beyond those a search with a proven bound; see ``explain``.

    A table of all sets of items is used as far as memory and threads go: it may take half of the memory that is free,
    and have 2**26 sets for each thread (at most 2**30). So a problem of more than 26 items may get another oracle on
    another machine: make a ``DenseOracle`` or a ``SearchOracle`` yourself where that must not be. Of an order that is
    made of chains, such as price levels, the table is one of how far each chain has come, of at most 2**25 states.

    >>> oracle = auto(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    >>> oracle.explain()
    'exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family)'
    """
    return _choose(assortments, ties, seed)[0]


def explain(assortments: Assortments) -> str:
    """Which oracle ``auto`` picks for these assortments here and now, and why.

    >>> explain(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    'LatticeOracle: exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family).
    A table of the unions of offers is the quickest: there are at most 131,072.'
    """
    oracle, why = _choose(assortments, "random", 0)
    return f"{type(oracle).__name__}: {oracle.explain()}. {why}."


def _choose(assortments: Assortments, ties: Ties, seed: int) -> tuple[Explained, str]:
    """An oracle, and why this one."""
    reduced = reduce(assortments)
    if assortments.order:
        return _choose_in_order(reduced, ties, seed)
    laminar = "Any two offers are nested or share no item, and so need no table"
    if reduced.is_laminar and assortments.n_offers > SMALL:
        return LaminarOracle(assortments, ties, seed), laminar
    _, offer_sets, n_items = item_bits(assortments, reduced.no_choice_code)
    n_parts = len(reduced.components)
    most, refused = MOST_STATES, ""
    if n_parts == 1 and n_items >= DENSE_FROM:
        refused = _no_table(n_items)
        room = max(int(SHARE * available_memory() / UNION_BYTES), 1024)
        if not refused:
            most = min(2**n_items // 6, MOST_UNIONS, room)
            most = most if most <= MANY_UNIONS or _few_unions(offer_sets) else MANY_UNIONS
    try:
        oracle = LatticeOracle(assortments, ties, seed, most)
        return oracle, f"A table of the unions of offers is the quickest: there are at most {most:,}"
    except TooManyUnionsError:
        if reduced.is_laminar:
            return LaminarOracle(assortments, ties, seed), laminar
        if n_parts > 1:
            return ComponentsOracle(assortments, auto, ties, seed), "Parts without a common item are solved one by one"
        many = f"There are more than {most:,} unions of offers"
        if refused:
            rounds = fewer(ROUNDS, assortments)
            return SearchOracle(assortments, ties, seed, rounds=rounds), f"{many}, and {refused}"
        table = f"{_gigabytes(n_items)} of the {available_memory() / 1e9:.3g} GB of memory that are free"
        return DenseOracle(assortments, ties, seed), f"{many}, and a table of all sets of items takes {table}"


def _choose_in_order(reduced: Reduced, ties: Ties, seed: int) -> tuple[Explained, str]:
    """The same where there is an order: tables of unions, of chains, or the search."""
    assortments, n_parts, most = reduced.assortments, len(reduced.components), MOST_STATES
    states = 0 if assortments.chains is None or n_parts > 1 else n_states(used_chains(reduced))
    fits = CHAINS_FROM <= states <= CHAINS_TO and 8 * states <= SHARE * available_memory()
    if fits:
        most = min(states // 6, CHAIN_UNIONS, max(int(SHARE * available_memory() / UNION_BYTES), 1024))
    try:
        oracle = LatticeOracle(assortments, ties, seed, most)
        return oracle, f"A table of the unions of offers is the quickest: there are at most {most:,}"
    except TooManyUnionsError:
        if n_parts > 1:
            return ComponentsOracle(assortments, auto, ties, seed), "Parts without a common item are solved one by one"
        many = f"There are more than {most:,} unions of offers"
        if fits:
            return ChainOracle(assortments, ties, seed), f"{many}, and the order is made of chains"
        rest = f"a table of its chains would have {states:,} states" if states else "the order is not made of chains"
        return SearchOracle(assortments, ties, seed), f"{many}, and {rest}"


def proving_table(assortments: Assortments, ties: Ties = "random", seed: int = 0) -> DenseOracle | None:
    """A table of all sets of items that is too slow for every round of a fit, but worth asking for a proof.

    It is of single precision, of at most 30 items beside no-choice (4.3 GB, some seconds a call), and takes at most
    half of the memory that is free. None where that is too little, or where the items have an order.

    >>> table = proving_table(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing")]))
    >>> table.precision, table.n_states
    ('single', 128)
    """
    if assortments.order:
        return None
    n_items = item_bits(assortments, reduce(assortments).no_choice_code)[2]
    room = SHARE * available_memory()
    if n_items > DENSE_MOST or table_bytes(n_items, assortments.n_items, "single") > room:
        return None
    return DenseOracle(assortments, ties, seed, memory=room, precision="single")


def _few_unions(offer_sets: list[int]) -> bool:
    """Whether a quarter of the offers, the small ones, has few unions: if not, counting those of all takes seconds."""
    small_first = np.array(sorted(set(offer_sets), key=int.bit_count), dtype=np.uint64)
    return collect_unions(small_first[: small_first.size // 4], np.empty(MANY_UNIONS, dtype=np.uint64)) >= 0


def _gigabytes(n_items: int) -> str:
    return f"{8 * 2**n_items / 1e9:.3g} GB"


def _no_table(n_items: int) -> str:
    """Why a table of all sets of items will not do here; empty if it will."""
    free, threads = available_memory(), thread_count()
    if n_items > DENSE_MOST:
        return f"a table of all sets of {n_items} items takes too long: {DENSE_MOST} is the most"
    if 8 * 2**n_items > SHARE * free:
        needed = f"needs {_gigabytes(n_items)} of memory, more than half of the {free / 1e9:.3g} GB that are free"
        return f"a table of all sets of {n_items} items {needed}"
    if 2**n_items > threads * 2**DENSE_TO:
        slow = f"more than 2**{DENSE_TO} for each thread that may be used, of which there {_are(threads)}"
        return f"all sets of {n_items} items are {slow}"
    return ""


def _are(number: int) -> str:
    return "is 1" if number == 1 else f"are {number}"
