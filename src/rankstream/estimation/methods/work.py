"""The cost of a method in CPU seconds and memory, predicted from the sizes of the data and never timed.

So the same data give the same method on every machine.
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rankstream.data import ChoiceCounts, observed
from rankstream.models.entropy.ensemble import CHOICE_FOLDS, n_folds
from rankstream.models.entropy.fit import QUICK_STATES, SAMPLES
from rankstream.models.entropy.guides import MAX_EXACT_CHOICES
from rankstream.models.entropy.ranking_laws import MAX_STATES
from rankstream.models.entropy.trust import MAX_FOLDS, N_DRAWN_RANKINGS
from rankstream.models.lifts import chains_of, closed_offers

SECONDS: dict[str, tuple[float, ...]] = {
    "max-entropy": (0.75, 1.1e-5, 2.6e-9, 3.6e-6, 1.5e-3),
    "latent-class": (0.023, 1.1e-5),
    "markov-chain": (0.003, 1.6e-8),
    "mnl": (0.001, 1.2e-8),
}
"""CPU seconds of each of a method's ``terms``, fitted by benchmarks/work.py; max-entropy took 0.8 to 1.7 times that."""
STEPS_POWER = 0.35  # steps of EM grow with the choices to this power, by the same benchmark
MAX_ITEMS = 64  # of an exact program, from which whole rankings are drawn
MAX_BYTES = 2**31  # of its program; this and the next two are limits that nobody measured
DEFAULT_SECONDS = 60.0  # that a fit may be predicted to take where no budget is given
MIN_SECONDS = 10.0  # that it may whatever the budget
MAX_OVERRUN = 4.0  # times the budget: cut short at a sixth of its time, 10 x 600 offers had 0.6 of nearest's error


class PredictedWork(NamedTuple):
    """Predicted CPU seconds and bytes of a fit."""

    seconds: float
    bytes: float

    def __str__(self) -> str:
        digits = ".2g" if self.seconds < 10.0 else ",.0f"
        return f"about {self.seconds:{digits}} s and {max(self.bytes / 2**30, 0.01):.2g} GB"


class Sizes(NamedTuple):
    """Sizes of the offers with choices; ``sets`` counts the unions of offers, 0 if too many for an exact program.

    If items have an order, such as price levels, there are no Markov chains.
    """

    items: int
    offers: int
    coordinates: int
    choices: float
    sets: int
    ordered: bool = False


def sizes_of(counts: ChoiceCounts) -> Sizes:
    """Return the sizes that the cost depends on."""
    from rankstream.oracles.tables.lattice import TooManyUnionsError, unions

    data = observed(counts)
    offers = data.assortments
    sets = 0
    if offers.n_items <= MAX_ITEMS and offers.chains is not None:
        closed = closed_offers(offers.indptr, offers.members, chains_of(offers))
        bits = np.zeros(offers.n_offers, dtype=np.uint64)
        np.bitwise_or.at(bits, closed.owner, np.uint64(1) << closed.members.astype(np.uint64))
        with suppress(TooManyUnionsError):
            sets = unions(bits, MAX_STATES if offers.order else QUICK_STATES).size
    shape = offers.n_items, offers.n_offers, offers.n_coordinates
    return Sizes(*shape, float(data.observations), sets, bool(offers.order))


def terms(sizes: Sizes) -> dict[str, tuple[float, ...]]:
    """Return the terms whose weighted sum is the time of each method; the first is the constant."""
    steps = min(sizes.choices, MAX_EXACT_CHOICES) ** STEPS_POWER
    mixtures = sizes.coordinates * steps
    chains = 0.0 if sizes.ordered else sizes.offers * sizes.items**3 * steps
    folds = n_folds(sizes.offers)
    sampled = 0 if sizes.sets else sizes.coordinates
    program = sizes.sets * sizes.items * (1 if sizes.ordered else sizes.items)
    constant = 5.0 if sizes.ordered else 1.0  # logits with a price take longer
    amounts: dict[str, tuple[float, ...]] = {
        "max-entropy": (constant, folds * mixtures, folds * chains, program, sampled)
    }
    if sizes.ordered:  # the other methods do not support an order
        return amounts
    return amounts | {
        "latent-class": (1.0, mixtures),
        "markov-chain": (1.0, chains),
        "mnl": (1.0, sizes.offers * sizes.items**2),
    }


def predict_work(counts: ChoiceCounts) -> dict[str, PredictedWork]:
    """Predict CPU seconds and memory of the methods that run to completion; others improve while there is time."""
    sizes = sizes_of(counts)
    tables = sizes.sets * (8.0 * sizes.items * (9 + sizes.items) + 1500.0)  # of a chain, and of about 60 classes
    rankings = SAMPLES + (MAX_FOLDS + CHOICE_FOLDS) * N_DRAWN_RANKINGS
    sampled = 0.0 if sizes.sets else 8.0 * sizes.coordinates * rankings
    work = {}
    for name, amounts in terms(sizes).items():
        seconds = sum(unit * amount for unit, amount in zip(SECONDS[name], amounts, strict=True))
        work[name] = PredictedWork(seconds, tables + sampled if name == "max-entropy" else 100.0 * sizes.coordinates)
    return work


def affords_max_entropy(counts: ChoiceCounts, budget: float | None = None) -> tuple[bool, str]:
    """Return whether maximum entropy is affordable within a budget of CPU seconds, and the reason.

    Its predicted time may be four times the budget: even cut short, it predicts better than the others.
    """
    offers = observed(counts).assortments
    if not 1 < offers.n_items <= MAX_ITEMS:
        return False, f"it needs 2 to {MAX_ITEMS} items, and there are {offers.n_items}"
    if offers.chains is None:
        return False, "the order of the items is not made of chains"
    limit = DEFAULT_SECONDS if budget is None else max(MIN_SECONDS, MAX_OVERRUN * budget)
    work = predict_work(counts)["max-entropy"]
    if work.bytes > MAX_BYTES:
        return False, f"it needs {work.bytes / 2**30:.1f} GB, and may have {MAX_BYTES / 2**30:.0f}"
    return work.seconds <= limit, f"it takes {work}, and may take {limit:g} s"
