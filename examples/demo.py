"""A model that learns from a simulated market while the choices arrive: ``make demo`` runs this.

python examples/demo.py [--out rankstream-demo] [--seed 0] [--per-round 200] [--tolerance 0.001] [--max-rounds 10000]

Ctrl-C ends the rounds and saves the model so far.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from matplotlib.figure import Figure

import rankstream as rs

NOTHING = "nothing"
ITEMS = ("tea", "coffee", "juice", "cake", "pie", "scone", "bagel", "toast", "soup", "salad")
MARGINS = (1.2, 1.5, 1.8, 2.0, 2.2, 1.1, 1.0, 0.8, 2.6, 2.4)
"""The margin of each item, for the best offer."""
NEVER_OFFERED = ("tea", "coffee", "cake", "pie", "scone", "soup", "salad", NOTHING)
Fit: TypeAlias = rs.Estimate[rs.RankingModel]


class Choices:
    """The choices of a market, one round after the other, until Ctrl-C; ``counts`` are those so far."""

    def __init__(self, market: rs.simulate.Market, per_round: int) -> None:
        self.stream, self.per_round, self.interrupted = market.stream(per_round), per_round, False
        self.counts = rs.ChoiceCounts(market.assortments)

    def __iter__(self) -> Iterator[rs.ChoiceCounts]:
        """Yield the counts of each round, and show how many there are."""
        for number, counts in enumerate(self.stream, 1):
            self.counts = counts
            yield counts
            if sys.stderr.isatty():
                print(f"\rround {number:>5}   choices {counts.observations:>9,.0f}", end="", file=sys.stderr)
            if self.interrupted:
                return

    def interrupt(self, *_: object) -> None:
        """End after this round; if Ctrl-C is pressed again, at once."""
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def watch(market: rs.simulate.Market, choices: Choices, tolerance: float, max_rounds: int) -> Fit:
    """Fit until the tolerance is met or Ctrl-C, and say how it ended."""
    before = signal.signal(signal.SIGINT, choices.interrupt)
    try:
        print(
            f"A market of {len(ITEMS)} items and '{NOTHING}', {market.assortments.n_offers} different offers: "
            f"2,000 choices to start with, then {choices.per_round:,} per round.",
            flush=True,
        )
        settings = rs.methods.PrimalDual(tolerance_mae=tolerance, max_rounds=max_rounds, certify_every=10)
        fit = rs.estimate(market.assortments, choices, method=settings, seed=market.seed)
    finally:
        signal.signal(signal.SIGINT, before)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if choices.interrupted:
        print("Interrupted: continuing with the model so far.")
    return fit


def describe(market: rs.simulate.Market, fit: Fit) -> None:
    """Print the model, its certificate, and what it predicts for an offer that nobody has seen."""
    proof, history = fit.certificate, fit.history
    print(
        f"\n{'Converged' if fit.converged else 'Stopped'} after {fit.rounds} rounds and "
        f"{history.observations[-1]:,.0f} choices: {len(fit.model.weights)} rankings, mean absolute error "
        f"{history.mae[-1]:.5f}.\nDistance from the observed shares {proof.upper:.4f} (l2). No ranking model can be "
        f"closer than {proof.lower:z.4f} (proven), so at most {proof.gap:.4f} could still be gained."
    )
    print("\nThe ten most frequent rankings:")
    for line in fit.model.describe(10):
        print(f"  {line}")
    offer = rs.Assortments([NEVER_OFFERED])
    predicted, true = (model.probabilities(offer).tolist() for model in (fit.model, market.truth))
    print(f"\nAn offer that is not in the data, {', '.join(NEVER_OFFERED)}:\n  {'':<10}{'predicted':>10}{'true':>8}")
    for item, share, truth in zip(NEVER_OFFERED, predicted, true, strict=True):
        print(f"  {item:<10}{100 * share:>8.1f} %{100 * truth:>6.1f} %")


def save(market: rs.simulate.Market, fit: Fit, counts: rs.ChoiceCounts, out: Path) -> None:
    """Write the model, a chart, the choices and the margins, and print what to do with them."""
    model, chart, data, items = (out / name for name in ("model.json", "demo.png", "choices.csv", "items.csv"))
    proof = fit.certificate
    certificate = {"distance": proof.upper, "proven_least_distance": proof.lower, "gap": proof.gap, "norm": "l2"}
    fit.model.note(certificate=certificate, choices=counts.observations, data={"file": str(data)}).save(model)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rs.plots.convergence(fit, left)
    shares, truth = fit.model.probabilities(market.test), market.truth.probabilities(market.test)
    rs.plots.predicted_against_true(shares, truth, right)
    figure.savefig(chart, dpi=150)
    pairs = [(offer, item) for offer in counts.assortments.offers for item in offer]
    tallies = zip(pairs, counts.tallies.tolist(), strict=True)
    rows = [f"{';'.join(map(str, offer))},{item},{tally:.0f}" for (offer, item), tally in tallies if tally]
    data.write_text("\n".join(["offered,chosen,count", *rows, ""]), encoding="utf-8")
    margins = [f"{item},{margin}" for item, margin in zip(ITEMS, MARGINS, strict=True)]
    items.write_text("\n".join(["item,margin", *margins, ""]), encoding="utf-8")
    words = ["report", model, "--data", data, "--margins", items, "-o", out / "report.html"]
    print(f"\nSaved {model} and {chart}.")
    print(f"To write a report about it: rankstream {' '.join(quote(str(word)) for word in words)}")


def at_least(least: float, kind: Callable[[str], float]) -> Callable[[str], float]:
    """Return what reads a number of the command line, no smaller than ``least``."""

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of that kind") from None
        if not number >= least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least:g}")
        return number

    return read


def main(words: Sequence[str] | None = None) -> None:
    """Simulate, fit, print and save."""
    parser = argparse.ArgumentParser(description="Watch a model learn from simulated choices.")
    parser.add_argument("--out", type=Path, default=Path("rankstream-demo"), help="folder for the results")
    parser.add_argument("--seed", type=at_least(0, int), default=0, help="seed of the market and its choices")
    parser.add_argument("--per-round", type=at_least(1, int), default=200, help="new choices per round")
    parser.add_argument("--tolerance", type=at_least(0.0, float), default=1e-3, help="mean absolute error to stop at")
    parser.add_argument("--max-rounds", type=at_least(1, int), default=10_000, help="maximum number of rounds")
    given = parser.parse_args(words)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{given.out} cannot be the folder of the results ({error.strerror}): give another with --out.")
    market = rs.simulate.market(given.seed, items=ITEMS, unseen=True)
    choices = Choices(market, given.per_round)
    fit = watch(market, choices, given.tolerance, given.max_rounds)
    describe(market, fit)
    save(market, fit, choices.counts, given.out)


if __name__ == "__main__":
    main()
