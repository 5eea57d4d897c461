"""How well offers never seen are predicted: RMSE of shares against the truth, held against every rival, in one run.

    python benchmarks/accuracy.py [--quick] [--few | --large | --others] [--markets 10] [--results FILE]
        [--ballots FILE ...] [--only NAME ...]

Results are kept in a file of JSON lines, one per truth, number of choices and market, and what is there is not computed
again: stop it when you like and go on later; ``--print`` shows what there is. Ratios are those of the mean errors of
"max-entropy" and of the best rival of a cell, with the standard error over markets by the delta method. Markets are
those of seeds from 5001 on, which no setting was tuned on.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np

import rankstream as rs
from rankstream import ChoiceCounts, Estimate, methods, models
from rankstream._core.watch import Deadline
from rankstream.columns.mle import fit_mle
from rankstream.models import ChoiceModel
from rankstream.models.entropy import guides
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl, fit_shrunk_logit
from truths import FEW_OFFERS, LARGE, OTHERS, TRUTHS, Make, ballots

FIRST_SEED = 5001
EXACT = 1e-4  # errors below this are the same: both are exact
SIZES = (100, 200, 500, 2_000, 10_000, 50_000, 0)
FEW_SIZES = (100, 200, 500)  # choices from few offers
OURS = "max-entropy"
Fit = Callable[[ChoiceCounts], ChoiceModel]


def primal_dual(counts: ChoiceCounts) -> ChoiceModel:
    """The paper's way, to its own stopping rule."""
    found: Estimate[Any] = rs.estimate(counts, method=methods.PrimalDual(max_rounds=3_000))
    model: ChoiceModel = found.model
    return model


def with_plain_logit(counts: ChoiceCounts) -> ChoiceModel:
    """Maximum entropy as it was before the logit among its base models was shrunk."""
    with patch.object(guides, "fit_never_buyers", lambda data: ((fit_mnl(data),), np.ones(1))):
        return models.fit_max_entropy(counts).model


def without_never_buyers(counts: ChoiceCounts) -> ChoiceModel:
    """Maximum entropy as it was before the logit among its base models had never-buyers."""
    with patch.object(guides, "fit_never_buyers", lambda data: ((fit_shrunk_logit(data),), np.ones(1))):
        return models.fit_max_entropy(counts).model


def without_nests(counts: ChoiceCounts) -> ChoiceModel:
    """Maximum entropy as it was before its base models had nests."""
    with patch.object(guides, "GUIDES", tuple(guide for guide in guides.GUIDES if guide is not guides.NESTS)):
        return models.fit_max_entropy(counts).model


MODELS: dict[str, Fit] = {
    OURS: lambda counts: models.fit_max_entropy(counts).model,
    "  plain logit": with_plain_logit,
    "  no never-buyers": without_never_buyers,
    "  no nests": without_nests,
    "  as in 0.2": lambda counts: models.fit_max_entropy(counts, "default").model,
    "  as in 0.2, stacked": lambda counts: models.fit_max_entropy(counts, "stacked").model,
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
    "primal-dual": primal_dual,
    "mle": lambda counts: fit_mle(counts, watch=Deadline(20.0)).model,
}
RIVALS = ("mnl", "latent-class", "markov-chain", "primal-dual", "mle")


def measure(make: Make, name: str, choices: int, seed: int, compared: Iterable[str]) -> dict[str, Any]:
    """One market and number of choices: errors on unseen offers, on larger ones, and CPU seconds, by model."""
    truth = make(seed)
    counts = truth.counts(choices, seed)
    row: dict[str, Any] = {"truth": name, "choices": choices, "seed": seed, "version": rs.__version__}
    for model in compared:
        start = time.process_time()
        fitted = MODELS[model](counts)
        seconds = time.process_time() - start
        errors = [truth.error(fitted, offers) if offers.n_offers else None for offers in (truth.test, truth.larger)]
        row[model] = [*errors, round(seconds, 3)]
    return row


def ratio(ours: np.ndarray[Any, Any], rival: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The ratio of two means over the same markets, and its standard error."""
    ours, rival = np.maximum(ours, EXACT), np.maximum(rival, EXACT)
    value = float(ours.mean() / rival.mean())
    spread = (ours - value * rival) / rival.mean()
    return value, float(spread.std(ddof=1) / np.sqrt(len(ours))) if len(ours) > 1 else float("nan")


def best_rival(cell: Sequence[Mapping[str, Any]], place: int) -> tuple[str, float, float]:
    """The rival with the least mean error in a cell, and the ratio of ours to it; without rivals, of our variants."""
    rivals = [model for model in RIVALS if model in cell[0]] or [m for m in MODELS if m in cell[0] and m != OURS]
    error = {model: np.array([row[model][place] for row in cell]) for model in (OURS, *rivals)}
    best = min(rivals, key=lambda model: float(error[model].mean()))
    return best, *ratio(error[OURS], error[best])


def show(rows: list[dict[str, Any]]) -> None:
    """A table for every truth, then what the ratios come to."""
    logs: dict[str, list[float]] = {"the sizes seen": [], "larger": []}
    behind: list[str] = []
    for name in dict.fromkeys(row["truth"] for row in rows):
        for place, which in enumerate(logs):
            cells = {size: [r for r in rows if r["truth"] == name and r["choices"] == size] for size in SIZES}
            cells = {size: cell for size, cell in cells.items() if cell and cell[0][OURS][place] is not None}
            if not cells:
                continue
            counts = " / ".join(str(len(cell)) for cell in cells.values())
            print(f"\n{name}; unseen offers of {which}; RMSE x 1000, mean of {counts} markets")
            print(f"{'choices':<20}" + "".join(f"{f'{s:,}' if s else 'exact':>14}" for s in cells) + "     CPU s")
            for model in [model for model in MODELS if model in rows[0]]:
                means = [1e3 * float(np.mean([row[model][place] for row in cell])) for cell in cells.values()]
                seconds = np.median([row[model][2] for cell in cells.values() for row in cell])
                print(f"{model:<20}" + "".join(f"{value:>14.1f}" for value in means) + f"{seconds:>10.2f}")
            found = [best_rival(cell, place) for cell in cells.values()]
            print(f"{'ours / best rival':<20}" + "".join(f"{f'{r:.2f} ± {e:.2f}':>14}" for _, r, e in found))
            print(f"{'best rival':<20}" + "".join(f"{rival:>14}" for rival, _, _ in found))
            logs[which] += [float(np.log(value)) for _, value, _ in found]
            worse = zip(cells, found, strict=True)
            behind += [f"{name}, {s:,}, {which}: {r:.2f} ± {e:.2f}" for s, (_, r, e) in worse if r - 2.0 * e > 1.05]
    for which, values in logs.items():
        if values:
            worst = np.exp(max(values))
            print(f"\n{which}: geometric mean of {len(values)} ratios {np.exp(np.mean(values)):.3f}, worst {worst:.2f}")
    print("more than 5 % behind, beyond two standard errors: " + ("; ".join(behind) if behind else "nowhere"))


def markdown(rows: list[dict[str, Any]], place: int) -> None:
    """The same as tables for the documentation: the least error of a column is bold."""
    for name in dict.fromkeys(row["truth"] for row in rows):
        cells = {size: [r for r in rows if r["truth"] == name and r["choices"] == size] for size in SIZES}
        cells = {size: cell for size, cell in cells.items() if cell and cell[0][OURS][place] is not None}
        shown = [model for model in MODELS if model in rows[0]]
        means = np.array(
            [[1e3 * np.mean([r[m][place] for r in cell]) for cell in cells.values()] for m in shown]
        ).round(1)
        print(f"\n**{name}**\n\n| choices | " + " | ".join(f"{s:,}" if s else "exact" for s in cells) + " |")
        print("|---" * (len(cells) + 1) + "|")
        for model, line in zip(shown, means, strict=True):
            texts = [
                f"**{v:.1f}**" if v == least else f"{v:.1f}" for v, least in zip(line, means.min(axis=0), strict=True)
            ]
            print(f"| {model.strip()} | " + " | ".join(texts) + " |")
        found = [best_rival(cell, place) for cell in cells.values()]
        print("| *ours / best rival* | " + " | ".join(f"{r:.2f} ± {e:.2f}" for _, r, e in found) + " |")


def main() -> None:
    """Compute what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one market, two sizes, nothing kept")
    parser.add_argument("--ballots", nargs="+", default=[], help="PrefLib files of real rankings, as further truths")
    parser.add_argument(
        "--large", action="store_true", help="20 x 300 to 50 x 500 instead, 10,000 choices, no sparse fits"
    )
    parser.add_argument("--few", action="store_true", help="6 to 10 offers instead, 100 to 500 choices")
    parser.add_argument("--others", action="store_true", help="never-buyers and nests instead")
    parser.add_argument("--truths", nargs="+", help="only these truths")
    parser.add_argument("--sizes", nargs="+", type=int, help="only these numbers of choices; 0 for exact shares")
    parser.add_argument("--only", nargs="+", help="only these models")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="where results are kept")
    parser.add_argument("--print", action="store_true", help="compute nothing")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation, too")
    options = parser.parse_args()
    real = {f"ballots {Path(path).stem}": ballots(path) for path in options.ballots}
    makes = LARGE if options.large else FEW_OFFERS if options.few else OTHERS if options.others else TRUTHS | real
    if options.truths:
        makes = {name: make for name, make in makes.items() if name in options.truths}
    only = options.only or (["mnl", "latent-class", "markov-chain"] if options.large else None)
    compared = [model for model in MODELS if not only or model.strip() in [OURS, *only]]
    kept = [] if options.quick or not options.results.exists() else options.results.read_text().splitlines()
    rows = [json.loads(line) for line in kept]
    done = {(row["truth"], row["choices"], row["seed"]) for row in rows}
    sizes: tuple[int, ...] = (10_000,) if options.large else FEW_SIZES if options.few else SIZES
    sizes, markets = tuple(options.sizes or sizes), options.markets
    if options.quick:
        sizes, markets = (2_000, 0), 1
    jobs = [(name, size, FIRST_SEED + m) for m in range(markets) for size in sizes for name in makes]
    jobs = [] if options.print else [job for job in jobs if job not in done]
    fits = joblib.Parallel(n_jobs=-1, return_as="generator_unordered")(
        joblib.delayed(measure)(makes[name], name, size, seed, compared) for name, size, seed in jobs
    )
    for row in fits:
        rows.append(row)
        if not options.quick:
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show(rows)
    if options.markdown:
        markdown(rows, 0)
        markdown(rows, 1)


if __name__ == "__main__":
    main()
