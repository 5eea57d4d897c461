"""Writes benchmarks/comparison.md: models on simulated markets, and on real data if RANKSTREAM_DATA names its folder.

Run it with ``python docs/comparison.py``; it takes a few minutes.
"""

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from rankstream import Assortments, ChoiceCounts, RankingModel, compare, read_counts, simulate
from rankstream._core.types import Vec
from rankstream._core.version import VERSION
from rankstream.evaluate.compare import MODELS
from rankstream.evaluate.comparison import Row, Score, ranked

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import truths

PAGE = Path(__file__).parent / "benchmarks" / "comparison.md"
SEEDS = range(100, 106)
SIZES = (2_000, 20_000)
FOLDS = 5
NAMES = (
    "max-entropy", "primal-dual", "nearest-l1", "nearest-linf", "mle", "frank-wolfe", "mnl", "latent-class",
    "markov-chain",
)  # fmt: skip
OPENING = f"""# Models compared

How well nine models predict choices that they have not seen, on simulated markets and on real ballots. To do the same
with your own data, see [how to compare models](../how-to/compare-models.md).

- `python docs/comparison.py` wrote this page on {date.today():%-d %B %Y}, with version {VERSION}. Each row
  is the mean of {len(SEEDS)} markets of 10 items and "nothing" (seeds {SEEDS[0]} to {SEEDS[-1]}).
- Offers have up to 5 items drawn at random; 100 other offers are for testing. Whole offers are held
  out, in {FOLDS} folds.
- A number is how far a model is behind the best, in log-likelihood per held-out choice, ± the 95 % margin of the
  difference, paired by market. **Bold** is the best, and every model within noise of it.

Keep in mind what the truth is:

- In the first part it is the paper's mixture of K logits with spread L (Appendix "Computational Study Details").
  That is what `latent-class` assumes, and with K = 1 what `mnl` assumes.
- In the second part customers follow ten random rankings, which is what `primal-dual` assumes.
- Real customers do neither. The last part has real ballots.
"""

BALLOTS = f"""Voters choose from random subsets of one to five candidates, plus "nobody further"; the truth is
the shares among all ballots. Each row is the mean of {len(SEEDS)} drawings of subsets and of voters."""


Maker = Callable[[int], tuple[Callable[[Assortments], Vec], Assortments, Assortments]]


@dataclass(frozen=True)
class Setting:
    """One line: its name, and how to make the truth and the offers of a market."""

    name: str
    make: Maker


def mixture(segments: int, spread: float, n_offers: int) -> Setting:
    """The paper's markets."""

    def make(seed: int) -> tuple[Callable[[Assortments], Vec], Assortments, Assortments]:
        market = simulate.market(seed, segments=segments, spread=spread, n_offers=n_offers, unseen=True)
        return market.truth.probabilities, market.assortments, market.test

    return Setting(f"K = {segments}, L = {spread:g}, {n_offers} offers", make)


def voters(path: Path) -> Maker:
    """Real voters, who choose as their ballots say."""
    draw = truths.ballots(str(path))

    def make(seed: int) -> tuple[Callable[[Assortments], Vec], Assortments, Assortments]:
        truth = draw(seed)
        return truth.shares, truth.offers, truth.test

    return make


def rankers(n_rankings: int, n_offers: int) -> Setting:
    """Markets whose customers follow rankings, on the same offers."""

    def make(seed: int) -> tuple[Callable[[Assortments], Vec], Assortments, Assortments]:
        market = simulate.market(seed, n_offers=n_offers, unseen=True)
        generator = np.random.default_rng(seed)
        items = market.assortments.items
        orders = [generator.permutation(len(items)) for _ in range(n_rankings)]
        truth = RankingModel.from_codes(items, np.array(orders), generator.dirichlet(np.ones(n_rankings)))
        return truth.probabilities, market.assortments, market.test

    return Setting(f"{n_rankings} rankings, {n_offers} offers", make)


GROUPS = {
    "The truth is a mixture of logits": [
        *(mixture(segments, spread, 20) for segments in (1, 5, 10) for spread in (5.0, 100.0)),
        mixture(5, 5.0, 50),
    ],
    "The truth is ten rankings": [rankers(10, 20), rankers(10, 50)],
}


def measure(setting: Setting, size: int) -> tuple[Row, ...]:
    """One score per market: the likelihood is that of held-out offers, the errors are those to the truth elsewhere."""
    scores: dict[str, list[Score]] = defaultdict(list)
    units: dict[str, str] = {}
    for seed in SEEDS:
        truth, offers, test = setting.make(seed)
        counts = ChoiceCounts(offers)
        generator = np.random.default_rng([seed, size])
        counts.observe_coordinates(simulate.draw_choices(offers, truth(offers), size, generator))
        for row in compare(counts, NAMES, folds=FOLDS, seed=seed).rows:
            apart = MODELS[row.name](counts, seed=seed).probabilities(test) - truth(test)
            units[row.name] = row.unit
            scores[row.name].append(
                Score(
                    row.mean("log_likelihood"),
                    row.mean("raw_log_likelihood"),
                    float(np.sqrt(np.mean(apart**2))),
                    float(np.abs(apart).mean()),
                    row.seconds,
                    round(row.mean("size")),
                )
            )
    return ranked(scores, units)


Lines = dict[str, tuple[Row, ...]]


def table(heading: str, lines: Lines, cell: Callable[[tuple[Row, ...], Row], str]) -> Iterator[str]:
    """One row per setting, one column per model."""
    yield f"| {heading} | {' | '.join(NAMES)} |"
    yield f"|---|{'---|' * len(NAMES)}"
    for name, rows in lines.items():
        by_name = {row.name: cell(rows, row) for row in rows}
        yield f"| {name} | {' | '.join(by_name[model] for model in NAMES)} |"
    yield ""


def behind(rows: tuple[Row, ...], row: Row) -> str:
    """The difference with its margin, or the best model's own value."""
    if row is rows[0]:
        return f"**best: {row.mean('log_likelihood'):.4f}**"
    text = f"{row.behind:.4f} ± {row.margin:.4f}"
    return f"**{text}**" if row.within_noise else text


def error_to_truth(rows: tuple[Row, ...], row: Row) -> str:
    """The mean error, bold where it is the least of the line."""
    text = f"{row.mean('rmse'):.4f}"
    return f"**{text}**" if row.mean("rmse") == min(other.mean("rmse") for other in rows) else text


def words(lines: Lines) -> Iterator[str]:
    """Who wins how often, and how the ranking model fares."""
    wins = Counter(rows[0].name for rows in lines.values())
    alone = Counter(rows[0].name for rows in lines.values() if not any(row.within_noise for row in rows[1:]))
    nearest = Counter(min(rows, key=lambda row: row.mean("rmse")).name for rows in lines.values())
    ours = [row for rows in lines.values() for row in rows if row.name == "primal-dual"]
    beaten = sum(not row.within_noise for row in ours)
    for name, won in wins.most_common():
        clear = alone[name] or "none"
        yield f"- `{name}` has the best likelihood in {won} of {len(lines)} rows, in {clear} of them clearly."
    yield f"- `primal-dual` is clearly behind the best in {beaten or 'none'} of {len(lines)} rows."
    for name, won in nearest.most_common():
        yield f"- `{name}` is nearest to the truth in {won} of {len(lines)} rows."


def times(lines: Lines) -> Iterator[str]:
    """How long a fit takes, in the middle of all lines."""
    for model in NAMES:
        seconds = [row.seconds for rows in lines.values() for row in rows if row.name == model]
        yield f"`{model}` {1e3 * float(np.median(seconds)):.1f} ms"


def simulated() -> Iterator[str]:
    """The tables of both groups."""
    for title, settings in GROUPS.items():
        yield from results(title, "", settings)


def results(title: str, about: str, settings: list[Setting]) -> Iterator[str]:
    """The tables of some settings, with words that follow from the numbers."""
    lines = {f"{setting.name}, {size:,} choices": measure(setting, size) for setting in settings for size in SIZES}
    yield from (f"## {title}", "", *([about, ""] if about else []), *words(lines), "")
    yield from table("held-out likelihood", lines, behind)
    yield "The root mean squared error to the true probabilities of offers that are not in the data:"
    yield ""
    yield from table("RMSE to the truth", lines, error_to_truth)
    yield from (f"The median time of a fit, on one of two busy cores: {', '.join(times(lines))}.", "")


def title_of(path: Path) -> str:
    """What a PrefLib file calls itself."""
    title = re.search(r"^# TITLE: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return title[1].strip() if title else path.stem


def real(folder: Path) -> Iterator[str]:
    """A line for every file of ballots and number of choices, and one comparison per CSV file."""
    ballots = [path for path in sorted(folder.rglob("*")) if path.suffix in (".soi", ".soc")]
    tables = sorted(folder.rglob("*.csv"))
    if not ballots and not tables:
        raise ValueError(f"RANKSTREAM_DATA is {folder}, where there are neither ballots (.soi) nor CSV files.")
    if ballots:
        settings = [Setting(title_of(path), voters(path)) for path in ballots]
        yield from results("Real ballots", BALLOTS, settings)
    for file in tables:
        try:
            text = compare(read_counts(file), NAMES, folds=FOLDS).table()
        except ValueError as error:
            text = f"not compared: {error}"
        yield from (f"## {file.stem}", "", "```text", text, "```", "")


def main() -> None:
    """Write the page."""
    parts = [OPENING, *simulated()]
    if folder := os.environ.get("RANKSTREAM_DATA"):
        parts += real(Path(folder))
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
