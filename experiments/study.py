"""The study itself: which runs are missing, playing them on several cores, and reporting how it went."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.fits import MARKS, StudyRow, run_all
from experiments.report import solver_ratio, write_report
from experiments.settings import StudyPart, StudyRun, choose
from experiments.store import Store
from experiments.tables import Results
from rankstream._core.terminal import print_json


@dataclass(frozen=True)
class Effort:
    """What one part took in this call."""

    part: StudyPart
    fits: int
    rounds: int
    seconds: float

    def __str__(self) -> str:
        if not self.fits:
            return f"{self.part.name:<28} nothing left to run"
        speed = f"{self.rounds / self.seconds:>9,.0f} oracle calls/s"
        return f"{self.part.name:<28}{self.fits:>6,} fits {self.rounds:>11,} rounds {self.seconds:>7.1f} s  {speed}"

    def content(self) -> dict[str, Any]:
        """The same as what JSON can write."""
        return {"name": self.part.name, "fits": self.fits, "rounds": self.rounds, "seconds": self.seconds}


def reproduce(names: list[str], instances: int, jobs: int, folder: Path, seed: int = 0, as_json: bool = False) -> Path:
    """StudyRun parts of the study, or all of it, and write the report; its path is returned.

    Instances are the markets of ``seed`` and the numbers after it. As JSON, the text goes to standard error instead.
    """
    console = Console(highlight=False, soft_wrap=True, stderr=as_json)
    parts = [replace(part, seed=seed) for part in choose(names)]
    start, efforts = time.perf_counter(), list[Effort]()
    store = run_parts(parts, instances, jobs, folder, console, efforts.append)
    middle = time.perf_counter()
    report = write_report(store, parts, instances)
    now = time.perf_counter()
    console.print(f"{'tables, figures and report':<28}{now - middle:>37.1f} s\n{'in all':<28}{now - start:>37.1f} s")
    if any(part.name == "solvers" for part in parts):
        console.print("\n" + solver_ratio({part.name: Results(store.rows(part.runs(instances))) for part in parts}))
    console.print(f"\nWrote {report}.")
    if as_json:
        told = {"instances": instances, "seed": seed, "seconds": now - start}
        print_json({"report": str(report), **told, "parts": [effort.content() for effort in efforts]})
    return report


def run_parts(
    parts: list[StudyPart],
    instances: int,
    jobs: int,
    folder: Path,
    console: Console,
    ended: Callable[[Effort], None] | None = None,
) -> Store:
    """StudyRun what is not in the folder yet, with one progress bar, and write the tables.

    Ctrl-C loses only the runs in flight: call again to go on.
    """
    store = Store(folder)
    wanted = {part.name: part.runs(instances) for part in parts}
    every = [run for runs in wanted.values() for run in runs]
    missing = sum(run not in store for run in set(every))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1) as pool,
    ):
        task = bar.add_task("fits", total=missing)
        for part in parts:
            bar.update(task, description=part.name)
            start, fits, rounds = time.perf_counter(), 0, 0
            for rows in pool(delayed(run_all)(group) for group in _groups(wanted[part.name], store)):
                store.add(rows)
                done = len({row.run for row in rows})
                fits, rounds = fits + done, rounds + sum(_rounds(row) for row in rows)
                bar.advance(task, done)
            effort = Effort(part, fits, rounds, time.perf_counter() - start)
            console.print(str(effort))
            if ended is not None:
                ended(effort)
    store.write_tables(every)
    return store


def _groups(runs: list[StudyRun], store: Store) -> Iterator[list[StudyRun]]:
    """Missing runs that share a market: they are played together, which spares making it again."""
    groups: dict[tuple[object, ...], list[StudyRun]] = {}
    for run in runs:
        if run not in store:
            groups.setdefault(run.market, []).append(run)
    return iter(groups.values())


def _rounds(row: StudyRow) -> int:
    last = row.run.kind != "profile" or row.results["mark"] == MARKS[-1]
    return int(row.results.get("calls", row.results["rounds"])) if last else 0
