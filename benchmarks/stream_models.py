"""What a stream publishes over time: its maximum-entropy model against its sparse one, and against a fit from scratch.

One market of the paper (10 items, 40 offers), batches of 500 choices, with and without a half-life; root mean squared
errors on 100 offers never made, and CPU seconds of the stream so far. With ``--change``, tastes change at once after
20,000 choices, or after 5,000 with a half-life of 500, and batches of 50 follow. With ``--detect``, changes are looked
for in the former, as they are by default.

With ``--markets 10``, only the maximum-entropy model is followed, in so many markets of seeds from the given one on,
and what is printed are its error and that of a fit from scratch (means), and their ratio (geometric mean).

Run with ``python benchmarks/stream_models.py [seed] [--last 20000] [--change] [--markets 10]``.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Iterator, Sequence

import numpy as np

from rankstream import Live, Record, estimate, methods, simulate
from rankstream.data.decay import make_counts
from rankstream.models.protocol import Predicts
from rankstream.streams.detector import ChangeDetector
from rankstream.streams.entropy_follower import EntropyFollower

SHOWN = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
SHOWN_AFTER = (50, 250, 500, 1_000, 2_000)  # choices since a change
Phase = tuple[str, int | None, int, int, tuple[int, ...]]  # sign, whose tastes, choices, batch, where errors are shown
TITLES = "published | sparse | from scratch | CPU s so far |\n|---|---|---|---|---|"


class Stream:
    """One market, its stream, and the lines of its table."""

    def __init__(self, seed: int, half_life: float | None, detect: bool = False) -> None:
        self.market = simulate.market(seed, n_offers=40, unseen=True)
        self.random, self.spent = np.random.default_rng(seed), 0.0
        self.live = Live(half_life=half_life, detect=detect)

    def records(self, truth: Predicts, number: int) -> Iterator[Record]:
        """Choices from the market's offers by somebody's tastes."""
        offers = self.market.assortments
        drawn = simulate.draw_choices(offers, truth.probabilities(offers), number, self.random)
        for place in drawn.tolist():
            yield Record(offers.offers[offers.owner[place]], offers.items[offers.members[place]])

    def follow(self, truth: Predicts, last: int, batch: int, shown: tuple[int, ...], sign: str = "") -> None:
        """Learn from so many choices, and print the errors where they are to be shown."""
        for number in range(batch, last + batch, batch):
            records = list(self.records(truth, batch))
            began = time.process_time()
            self.live.observe(records)
            self.spent += time.process_time() - began
            if number in shown and self.live.counts is not None:
                scratch = estimate(self.live.counts, method=methods.MaxEntropy()).model
                errors = [self.error(model, truth) for model in (self.live.model, self.live.sparse, scratch)]
                cells = " | ".join(f"{error:.1f}" for error in errors)
                print(f"| {sign}{number:,} | {cells} | {self.spent:.1f} |", flush=True)

    def error(self, model: Predicts, truth: Predicts) -> float:
        """Root mean squared error on offers never made, times 1,000."""
        offers = self.market.test
        return 1e3 * float(np.sqrt(np.mean((model.probabilities(offers) - truth.probabilities(offers)) ** 2)))


def follow_counts(
    seed: int, phases: Sequence[Phase], half_life: float | None = None, detect: bool = False
) -> Iterator[tuple[str, float, float]]:
    """The errors of the model that follows a stream and of a fit from scratch, at each number of choices shown."""
    stream, served = Stream(seed, half_life), EntropyFollower(seed=0)
    offers = stream.market.assortments
    counts, detector, restarted = make_counts(offers, half_life, None), ChangeDetector(offers), None
    for sign, of, last, batch, shown in phases:
        truth = stream.market.truth if of is None else simulate.market(seed + of).truth
        shares = truth.probabilities(offers)
        for number in range(batch, last + batch, batch):
            drawn = stream.random.multinomial(batch, shares / shares.sum())
            places = np.repeat(np.arange(drawn.size), drawn)
            records = np.random.default_rng(number).permutation(places)
            if detect:
                detector.observe_coordinates(records)
                counts = detector.counts
            else:
                counts.observe_coordinates(records)
            served.follow(counts, float(batch), detector.restarted != restarted)
            restarted = detector.restarted
            if number in shown:
                scratch = estimate(counts, method=methods.MaxEntropy()).model
                yield f"{sign}{number:,}", stream.error(served.model, truth), stream.error(scratch, truth)


def show_markets(seed: int, markets: int, phases: Sequence[Phase], half_life: float | None, detect: bool) -> None:
    """The errors of several markets together."""
    runs = [list(follow_counts(seed + k, phases, half_life, detect)) for k in range(markets)]
    found = np.array([[errors for _, *errors in run] for run in runs])
    logs = np.log(found[:, :, 0] / found[:, :, 1])
    name = "choices, detector" if detect else "choices" if half_life is None else f"choices, half-life {half_life:g}"
    print(f"\n| {name} | published | from scratch | ratio | least, greatest |\n|---|---|---|---|---|")
    for (number, *_), means, rows in zip(runs[0], found.mean(axis=0), logs.T, strict=True):
        error = rows.std(ddof=1) / np.sqrt(markets)
        ratio = f"{np.exp(rows.mean()):.2f} ± {error:.2f} | {np.exp(rows.min()):.2f}, {np.exp(rows.max()):.2f}"
        print(f"| {number} | {means[0]:.1f} | {means[1]:.1f} | {ratio} |", flush=True)


def main() -> None:
    """Print a table for each way of forgetting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    parser.add_argument("--last", type=int, default=20_000, help="choices in all")
    parser.add_argument("--change", action="store_true", help="let tastes change, and show the errors after it")
    parser.add_argument("--detect", action="store_true", help="look for changes, without a half-life")
    parser.add_argument("--markets", type=int, default=0, help="average over so many markets")
    options = parser.parse_args()
    if options.markets and not options.change:
        show_markets(options.seed, options.markets, [("", None, options.last, 500, SHOWN)], None, options.detect)
        return
    fading = () if options.detect else (500.0 if options.change else 2_000.0,)
    for half_life in (None, *fading):
        if options.markets:
            before = 5_000 if half_life else 20_000
            phases = [("", None, before, 500, (before,)), ("+", 500, SHOWN_AFTER[-1], 50, SHOWN_AFTER)]
            show_markets(options.seed, options.markets, phases, half_life, options.detect)
            continue
        print(f"\n| choices, half-life {half_life or 'none'} | {TITLES}")
        stream = Stream(options.seed, half_life, options.detect)
        if options.change:
            before = 5_000 if half_life else 20_000
            stream.follow(stream.market.truth, before, 500, (before,))
            stream.follow(simulate.market(options.seed + 500).truth, SHOWN_AFTER[-1], 50, SHOWN_AFTER, "+")
        else:
            stream.follow(stream.market.truth, options.last, 500, SHOWN)


if __name__ == "__main__":
    main()
