"""How often the intervals that ``fit`` stores with a model contain the truth, and what they add to the time of a fit.

    python benchmarks/errors.py [--quick] [--markets 10] [--seed 7001] [--truths "one logit,five logits"]

Truths are those of ``truths.py`` (10 items, 40 offers). All answers are about everything on offer: the share of each
item, who gains when an item is gone (of items that at least one customer in a hundred buys, as parts of fewer
cannot be seen in the data), and the types of customers by their first two choices, of at least one in a hundred. Fits
are by maximum entropy; the time is CPU time, with errors over without.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np

from rankstream import Assortments, ChoiceCounts, fit_within
from rankstream.estimation.errors import StoredErrors, store_errors
from rankstream.models.answers import favourites, substitution
from truths import TRUTHS, Shares

FIRST_SEED = 7001  # the factors of ``Misfit`` were chosen on seeds from 5001 on
MIN_SHARE = 0.01
KINDS = ("shares", "substitution", "types")


class TrueModel:
    """A true model as answers need it."""

    def __init__(self, items: tuple[object, ...], shares: Shares) -> None:
        self.items, self.probabilities = items, shares


def measure(name: str, choices: int, seed: int) -> tuple[dict[str, tuple[int, int, float]], float]:
    """For each kind of answer, how many intervals contain the truth, of how many, and their summed width; the time."""
    market = TRUTHS[name](seed)
    counts, shares = market.counts(choices, seed), market.shares
    began = time.process_time()
    found = fit_within(counts, method="max-entropy")
    fitted = time.process_time()
    store_errors(found, counts, 0, lambda *_: False)
    ratio = (time.process_time() - began) / (fitted - began)
    stored = StoredErrors.of(found.model)
    assert stored is not None
    true = substitution(TrueModel(found.model.items, shares), stored.offer)
    moves = stored.substitution()
    assert moves.low is not None
    assert moves.high is not None
    common = [place for place, share in enumerate(true.before) if share >= MIN_SHARE]
    ends = np.array(list(stored.predict().values()))
    types, known = favourites(true, found.model.no_choice), stored.favourites()
    pairs = [(known[key], share) for key, share in types.items() if share >= MIN_SHARE and key in known]
    rows = {
        "shares": (ends[:, 1], ends[:, 2], true.before),
        "substitution": tuple(
            part[common][:, common][~np.eye(len(common), dtype=bool)] for part in (moves.low, moves.high, true.shares)
        ),
        "types": tuple(np.array(part) for part in zip(*((s.low, s.high, share) for s, share in pairs), strict=True)),
    }
    inside = {
        kind: (int(((low <= truth) & (truth <= high)).sum()), truth.size, float((high - low).sum()))
        for kind, (low, high, truth) in rows.items()
    }
    return inside, ratio


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three truths, two markets each")
    parser.add_argument("--markets", type=int, default=10)
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first market; the next has the next one")
    parser.add_argument("--truths", default="", help="names of truths, separated by commas (default: all)")
    given = parser.parse_args()
    names = ("five logits", "normal taste", "ten rankings") if given.quick else tuple(TRUTHS)
    names = tuple(given.truths.split(",")) if given.truths else names
    offers = Assortments([("a", "b", "c"), ("a", "c"), ("b", "c"), ("a", "b")])
    fit_within(ChoiceCounts(offers, [3, 2, 1, 2, 2, 2, 1, 2, 3]), method="max-entropy", errors=True)  # compiles
    print(f"{'truth':<16}{'choices':>9}" + "".join(f"{kind:>15}{'width':>8}" for kind in KINDS) + f"{'time':>8}")
    for name in names:
        for choices in (2_000, 10_000):
            found = [measure(name, choices, given.seed + k) for k in range(2 if given.quick else given.markets)]
            line = f"{name:<16}{choices:>9,}"
            for kind in KINDS:
                inside, size, width = np.sum([row[kind] for row, _ in found], axis=0)
                line += f"{100 * inside / size:>13.1f} %{width / size:>8.3f}"
            print(f"{line}{np.median([ratio for _, ratio in found]):>8.2f}", flush=True)


if __name__ == "__main__":
    main()
