"""The exact oracle for dense problems of up to about thirty items: one number per set of unranked items."""

from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import ROUNDING, Bits, Vec, number_between
from rankstream._core.threads import crew
from rankstream.data import Assortments, refuse_order
from rankstream.oracles.protocol import Answer, TableOracle, Ties, finite_costs
from rankstream.oracles.reductions import item_bits, reduce
from rankstream.oracles.tables import dense_kernels
from rankstream.oracles.tables.dense_kernels import SetProblem
from rankstream.oracles.walk_kernels import WalkTable

MAX_BITS = 62  # of a set in one signed word
BLOCK_SETS = 2**dense_kernels.LOW_BITS
MIN_THREADED_SETS = 2**18  # sets from which on two threads take less time than one (benchmarks/threads.py)
HALF_UNIT = 2.0**-24  # the most that single precision rounds off a number, as a part of it
Precision = Literal["double", "single"]


class DenseOracle(TableOracle):
    """The subset dynamic program with 8 bytes per set: W[R] = min over i in R of cost(i, R) + W[R minus i].

    cost(i, R) is the cost of item i in the offers inside R. It is never stored for all sets: the rarest items take the
    lowest bits, and a walk over the other bits keeps tables over the low bits only. Items in the same offers share a
    bit, and the no-choice item ends the ranking. Items whose costs differ by a tiny relative amount
    (``walk_kernels.TIE_TOLERANCE``) count as ties, because sums in another order differ as much. All threads that numba
    may use fill large tables; their number does not change the answers. Threads may share an oracle: each call waits
    until the one before has read its ranking from the table.

    Parameters
    ----------
    assortments, ties, seed : as for ``SearchOracle``
        The offers, which of the cheapest rankings to return, and the seed of random ties.
    memory : float
        Maximum number of bytes; the table takes 8 * 2**bits.
    precision : "double" or "single"
        A table of single precision takes half of the memory and less time. Values of its rankings are still computed in
        double precision; the bound is the table's least value minus a margin for rounding (``margin``).

    Examples
    --------
    >>> oracle = DenseOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.ranking[:2], answer.value, answer.exact
    (array([3, 0]), -2.0, True)
    """

    def __init__(
        self,
        assortments: Assortments,
        ties: Ties = "random",
        seed: int = 0,
        memory: float = 12e9,
        precision: Precision = "double",
    ) -> None:
        super().__init__(assortments, ties, seed)
        if precision not in ("double", "single"):
            raise ValueError(f"The precision is {precision!r}: choose 'double' or 'single'.")
        refuse_order(assortments.order, "A table of all sets of items", "use ChainOracle, or oracles.auto")
        self.memory = number_between("memory", memory, 0.0)
        self.precision: Precision = precision
        kind = np.dtype(np.float64 if precision == "double" else np.float32)
        bit_of, offer_sets, n_bits = item_bits(assortments, self._universal)
        n_levels = max(n_bits - dense_kernels.LOW_BITS, 0) + 1
        n_rows = n_levels * assortments.n_items + dense_kernels.LOW_BITS
        n_sets = 2 ** max(n_bits, dense_kernels.LOW_BITS)
        needed = table_bytes(n_bits, assortments.n_items, precision)
        if n_bits > MAX_BITS or needed > memory:
            size = f"{needed:,}" if n_bits <= MAX_BITS else f"2**{n_bits + 3}"
            raise ValueError(
                f"{n_bits} items with different availability need {size} bytes in the dense oracle, which may take "
                f"{min(memory, 8.0 * 2**MAX_BITS):,.0f}: leave out rare items, or raise memory if there is that much."
            )
        self._n_bits = n_bits
        bit_of, offer_sets = _rare_items_low(bit_of, offer_sets, n_bits)
        self._problem = self._plan(bit_of, offer_sets, n_levels)
        numbers = np.empty((n_levels, assortments.n_items), dtype=np.uint64)
        self._space = [(np.empty((n_rows, BLOCK_SETS), dtype=kind), numbers)]
        self._to_go = np.empty(n_sets, dtype=kind)
        places, ones = [_lowest_bit(bit, -1) for bit in bit_of], np.ones(n_bits, dtype=np.int64)
        self._table = WalkTable(  # a bit is a chain of one, shared by items in the same offers
            np.array(places, dtype=np.int64), np.ones(assortments.n_items, dtype=np.int64), 2 * ones,
            ones << np.arange(n_bits), self._to_go[: 2**n_bits],
        )  # fmt: skip
        self._lock = Lock()

    @property
    def n_states(self) -> int:
        """The number of sets of items in the table."""
        return self._to_go.size

    def _plan(self, bit_of: list[int], offer_sets: list[int], n_levels: int) -> SetProblem:
        """Sort the offers by their lowest high bit, which completes them, and split the items into high and low."""
        levels = [_lowest_bit(offer_set // BLOCK_SETS, n_levels - 1) for offer_set in offer_sets]
        items = sorted((item for item, bit in enumerate(bit_of) if bit), key=lambda item: bit_of[item])
        low = [item for item in items if bit_of[item] < BLOCK_SETS]
        ends = np.flatnonzero(self.assortments.members == self._universal)
        self._ends = ends[self.assortments.owner] if ends.size else None
        return SetProblem(
            *self._shape,
            offer_sets=np.array(offer_sets, dtype=np.uint64),
            order=np.argsort(levels, kind="stable").astype(np.int64),
            starts=np.searchsorted(np.sort(levels), np.arange(n_levels + 1)).astype(np.int64),
            bit_of=np.array(bit_of, dtype=np.uint64),
            high_items=np.array(items[len(low) :], dtype=np.int64),
            low_items=np.array(low, dtype=np.int64),
            low_places=np.array([_lowest_bit(bit_of[item], 0) for item in low], dtype=np.int64),
            universal=self._universal,
        )

    def beginning_with(self, first: list[tuple[int, ...]], costs: ArrayLike) -> list[Answer]:
        """Fill the table once and read the best completion of every beginning from it."""
        vector = finite_costs(self.assortments, costs)
        above_end = vector if self._ends is None else vector - vector[self._ends]
        scale = 1.0
        if self.precision == "single":
            # scaling by a power of two is exact, and keeps all numbers in the range of single precision
            scale = 2.0 ** -np.frexp(np.abs(above_end).max(initial=0.0))[1]
            above_end = above_end * scale
        with self._lock:  # there is only one table
            self._fill(above_end.astype(self._to_go.dtype, copy=False))
            found = self._read(first, vector, above_end, self._table)
            table_least = float(self._to_go[2**self._n_bits - 1])
        if self.precision == "single":
            ends = 0.0 if self._ends is None else float(vector[self._ends[self.assortments.indptr[:-1]]].sum())
            least = (table_least - self.margin(above_end)) / scale
            bound = ends + least - ROUNDING * vector.size * float(np.abs(vector).sum())
        else:
            bound = min((value for _, value in found), default=0.0)
        return [Answer(ranking, value, bound) for ranking, value in found]

    def margin(self, above_end: Vec) -> float:
        """Bound how far a table of single precision can be above the true least cost, for costs above no-choice.

        With u = 2**-24: the cost of an item is a sum of at most ``most`` rounded costs. Its partial sums are at most
        the item's level, the larger of the sums of its positive and its negative costs, so its error is (most + 2) u
        times the level. Every step from the empty set to all items adds such a cost to a number of at most the sum of
        all levels, with an error of u times that sum. The factor 1.001 covers products of roundings.
        """
        members, n_items = self.assortments.members, self.assortments.n_items
        gains, losses = (np.bincount(members, np.maximum(part, 0.0), n_items) for part in (above_end, -above_end))
        most = int(np.bincount(members).max(initial=0))
        return 1.001 * HALF_UNIT * (self._n_bits + most + 2) * float(np.maximum(gains, losses).sum())

    def _fill(self, above_end: Vec) -> None:
        """Fill the table part by part, the parts of a layer on as many threads as there are."""
        n_blocks, fixed = self.n_states // BLOCK_SETS, (above_end, self._problem, self._to_go)
        with crew(self.n_states >= MIN_THREADED_SETS) as threads:
            layers = _layers(threads.size, self.n_states)
            size = np.uint64(n_blocks // sum(layer.size for layer in layers))
            while len(self._space) < threads.size:
                self._space.append((np.empty_like(self._space[0][0]), np.empty_like(self._space[0][1])))
            unused = self._space.copy()  # one for each thread
            for layer in layers:

                def fill(task: int, layer: Bits = layer) -> None:
                    space = unused.pop()
                    dense_kernels.fill_part(layer[task], size, *fixed, *space)
                    unused.append(space)

                threads.run(fill, layer.size)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        how = "exact" if self.precision == "double" else "exact up to single precision"
        return f"{how}, by all {self.n_states:,} sets of items ({reduce(self.assortments).explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return DenseOracle, (self.assortments, self.ties, self.seed, self.memory, self.precision)


def table_bytes(n_bits: int, n_items: int, precision: Precision = "double") -> int:
    """Return the bytes of a table, with the rows of placing costs of one thread.

    >>> table_bytes(30, 31, "single") / 1e9
    4.295354812
    """
    n_rows = (max(n_bits - dense_kernels.LOW_BITS, 0) + 1) * n_items + dense_kernels.LOW_BITS
    numbers: int = (1 << max(n_bits, dense_kernels.LOW_BITS)) + n_rows * (BLOCK_SETS + 1)
    return numbers * (8 if precision == "double" else 4)


def _layers(n_threads: int, n_states: int) -> list[Bits]:
    """Return the parts of the table by their number of top bits; parts of one layer do not depend on each other.

    More parts mean less idle time at the end of a layer, but each has to compute its first rows again.
    """
    n_bits = n_states.bit_length() - 1
    parts = np.arange(2 ** max(n_bits // 2 - 4, 0) if n_threads > 1 else 1, dtype=np.uint64)
    sizes = np.bitwise_count(parts)
    return [parts[sizes == size] for size in range(int(sizes.max()) + 1)]


def _lowest_bit(number: int, none: int) -> int:
    return (number & -number).bit_length() - 1 if number else none


def _rare_items_low(bit_of: list[int], offer_sets: list[int], n_bits: int) -> tuple[list[int], list[int]]:
    """Reassign the bits, low ones to items in few offers, so that tables change rarely."""
    counts = [sum(offer_set >> place & 1 for offer_set in offer_sets) for place in range(n_bits)]
    new_place = {place: rank for rank, place in enumerate(sorted(range(n_bits), key=counts.__getitem__))}

    def moved(old: int) -> int:
        return sum(1 << new_place[place] for place in range(n_bits) if old >> place & 1)

    return [moved(bit) for bit in bit_of], [moved(offer_set) for offer_set in offer_sets]
