"""Faults that replay: a seed decides all requests, crashes, failed writes, clock jumps, pauses and lost messages.

``--seeds 10000`` runs that many schedules in all cores and prints a table; ``--seed N`` replays one. A failure prints
its seed and the shortest schedule that still fails. ``--bug NAME`` puts a known bug back. docs/explanation/quality.md
says what is simulated and what is not.
"""

import argparse
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any, NamedTuple

import httpx

from fault_bugs import BUGS
from fault_world import World, simulated
from rankstream.service.storage import log, states

MARKETS = ("cafe", "bar")
ITEMS = ["tea", "pie", "nothing"]
FATES = ("fine", "fine", "lost request", "lost answer", "doubled", "late")
QUERIES = (  # of the log (0) and of what was learned (1)
    (0, "SELECT id, records, epoch FROM markets"),
    (0, "SELECT market, position, records, body FROM batches ORDER BY position"),
    (1, "SELECT market, epoch, position, state FROM learned"),
    (1, "SELECT market, epoch, facts, model FROM served"),
)
KEEP_SECONDS = 3600.0
STEPS = 20
TURNS_AFTER = 12  # of the learner, after which everything must be learned
Step = dict[str, Any]


class Outcome(NamedTuple):
    """The end of a run: what was violated (empty: nothing), the number of steps, and the faults by kind."""

    problem: str
    steps: int
    faults: Counter[str]


class ViolationError(Exception):
    """An invariant does not hold."""


def schedule(seed: int) -> list[Step]:
    """Return the steps of a seed. Each has all of its parameters, so that others can be dropped."""
    random, steps, jumps = Random(seed), list[Step](), 0
    keep = KEEP_SECONDS if random.random() < 0.6 else None
    is_leased = seed % 3 == 2  # then two learners share the markets

    def learner() -> str:
        return random.choice(("learner", "second")) if is_leased else "learner"

    for number in range(1, STEPS + 1):
        draw = random.random()
        if draw < 0.40:
            kind = random.choices(("client", "plain", "bad"), (6, 3, 1))[0]
            fates = [random.choice(FATES) for _ in range(3)] if random.random() < 0.5 else []
            content = {"market": random.choice(MARKETS), "records": random.randint(1, 4), "fates": fates}
            steps.append({"do": kind, "number": number, **content})
        elif draw < 0.62:
            steps.append({"do": "learn", "seconds": random.choice((0.0, 1.0, 600.0)), "who": learner()})
        elif draw < 0.70:
            steps.append({"do": "sweep", "seconds": random.choice((0.0, KEEP_SECONDS + 60.0))})
        elif draw < 0.74 and keep is None:
            steps.append({"do": "settings", "market": random.choice(MARKETS), "window": random.randint(5, 9)})
        elif draw < 0.78 and jumps < 3:  # keys are kept for seven days, and requests come late
            jumps += 1
            steps.append({"do": "jump", "seconds": random.uniform(-1.5, 1.5) * 86_400})
        elif draw < 0.82:
            steps.append({"do": "free"} if random.random() < 0.5 else {"do": "ask", "market": random.choice(MARKETS)})
        else:
            steps.append({"do": "fault", **_fault(random, learner(), is_leased)})
    return [{"do": "begin", "keep": keep, "leases": is_leased}, *steps]


def _fault(random: Random, learner: str, is_leased: bool) -> Step:
    weights = (4, 3, 3, 1, 6 if is_leased else 2)
    kind = random.choices(("crash", "power loss", "failed write", "full disk", "pause"), weights)[0]
    process = learner if kind == "pause" else random.choice(("server", learner))
    fault: Step = {"kind": kind, "process": process, "after": random.randint(0, 9)}
    if kind == "pause":
        return fault | {"after": random.randint(0, 2), "steps": random.randint(1, 4)}
    return fault | {"late": random.random() < 0.6, "cut": random.random()} if kind in ("crash", "power loss") else fault


class Run:
    """One run of a schedule."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps, self.place = list(steps), 0
        given = self.steps.pop(0) if self.steps and self.steps[0]["do"] == "begin" else {}
        self.world, self.is_leased = World(given.get("keep"), self.run_steps), given.get("leases", False)
        self.requested: dict[int, bool] = {}  # by request: whether it may be stored once only
        self.acknowledged: dict[int, int] = {}  # by request: the position that its client was told
        self.history: dict[int, dict[int, Counter[str]]] = {}  # by market and position: records by request
        self.ends: dict[int, list[int]] = {}  # positions of each request in the log
        self.answers: dict[int, list[Any]] = {}  # of the server to each request
        self.reached: dict[tuple[str, int], tuple[int, int]] = {}
        self._folder: Path | None = None
        self._files: list[sqlite3.Connection] = []

    def run(self) -> None:
        """Run all steps, end the faults, and check that everything is learned."""
        with simulated(self.world):
            self.run_steps(len(self.steps))
            self.world.disk.due.clear()
            self.world.disk.is_full = False
            self.world.write(lambda server: server.sweep)
            for _ in range(TURNS_AFTER):
                self.world.clock.sleep(600.0)
                self.world.learn("learner", self.is_leased)
                self.check()
                rows, learned = self.read()[:2]
                reached = {market: (epoch, position) for market, epoch, position, _ in learned}
                behind = [row[0] for row in rows if row[1] and reached.get(row[0]) != (row[2], row[1])]
                if not behind:
                    return
            raise ViolationError(f"markets {behind}: not everything is learned after the faults")

    def run_steps(self, number: int) -> None:
        """Run the next steps; the learner calls this while it is paused."""
        for _ in range(number):
            if self.place < len(self.steps):
                self.place += 1
                self.step(self.steps[self.place - 1])
                self.check()

    def step(self, step: Step) -> None:
        """Run one step."""
        world, kind = self.world, step["do"]
        world.clock.sleep(step["seconds"] if kind in ("learn", "sweep") else 0.5)
        if kind in ("client", "plain", "bad"):
            self.send(step)
        elif kind == "learn":
            world.learn(step["who"], self.is_leased)
        elif kind == "sweep":
            world.write(lambda server: server.sweep)
        elif kind == "settings":
            changes = {"window": step["window"]}
            world.write(
                lambda server: lambda connection: server.ingest.change_settings(connection, step["market"], changes)
            )
        elif kind == "jump":
            world.clock.wall += step["seconds"]
            world.faults["clock jump"] += 1
        elif kind == "ask":
            answer = world.ask(step["market"])
            if answer is not None:
                self._advance("answer", answer[0], answer[1:])
        elif kind == "free":
            world.disk.is_full = False
        elif kind == "fault":
            world.disk.due.append({name: value for name, value in step.items() if name != "do"})

    def send(self, step: Step) -> None:
        """Send a batch: by the real client with a key and retries, or by a plain request without."""
        number, market = step["number"], step["market"]
        # the request is the time of its records, so that they are recognized wherever they are
        records: list[Any] = [{"offered": ITEMS, "chosen": "tea", "time": number}] * step["records"]
        if step["do"] == "bad":
            records.append({"offered": ITEMS, "chosen": "cake"})
        self.requested[number] = step["do"] == "client"
        self.world.fates = list(step["fates"])
        if step["do"] == "client":
            with suppress(ValueError):  # it gave up
                self.acknowledged[number] = self.world.client.send(market, records)
            return
        url = f"http://service/v1/markets/{market}/choices"
        with suppress(httpx.TransportError):
            answer = self.world.exchange(httpx.Request("POST", url, json={"records": records}))
            if answer.status_code == 202:
                self.acknowledged[number] = answer.json()["position"]

    def read(self) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return markets, states, published models and batches from the files."""
        folder = self.world.folder
        if self._folder != folder:
            self.close()
            if not all((folder / name).is_file() for name in (log.NAME, states.NAME)):
                return [], [], [], []
            self._folder, self._files = folder, [sqlite3.connect(folder / name) for name in (log.NAME, states.NAME)]
        found = []
        for number, query in QUERIES:
            try:
                found.append(self._files[number].execute(query).fetchall())
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                found.append([])  # the process crashed before it made them
        rows, batches, saved, served = found
        return rows, saved, served, batches

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._folder, self._files = None, []

    def check(self) -> None:
        """Raise a ViolationError if an invariant does not hold."""
        if "both" in self.world.dead:
            return  # the power is off
        rows, saved, served, batches = self.read()
        for market, end, number, body in batches:
            self._append(market, end, number, body)
        for market, records, epoch in rows:
            self._advance("log", market, (epoch, records))
            if max(self.history.get(market, {0: 0})) != records:
                raise ViolationError(f"market {market}: the log ends elsewhere than at record {records}")
        self._check_requests()
        learned = {}
        for market, epoch, position, state in saved:
            self._advance("state", market, (epoch, position))
            own_position, _, counts = json.loads(state)
            self._is_prefix("state", market, position, counts)
            if own_position != position:
                raise ViolationError(f"market {market}: the state has another position than its row")
            learned[market] = epoch, position
        for market, epoch, facts, model in served:
            position = json.loads(facts)["position"]
            self._advance("model", market, (epoch, position))
            self._is_prefix("model", market, position, json.loads(model))
        for market, records, epoch in rows:
            at = learned.get(market, (0, 0))
            position = at[1] if at[0] == epoch else 0
            if sum(batch[2] for batch in batches if batch[0] == market and batch[1] > position) != records - position:
                raise ViolationError(f"market {market}: records that are not learned are gone from the log")

    def _append(self, market: int, end: int, number: int, body: str) -> None:
        """Add a batch to what was ever seen in the log."""
        history = self.history.setdefault(market, {0: Counter()})
        if end in history:
            return
        last = max(history)
        if end != last + number:
            raise ViolationError(f"market {market}: a batch of {number} ends at {end}, the one before at {last}")
        records = Counter(str(int(record[3])) for record in json.loads(body))
        history[end] = history[last] + records
        for request in records:
            self.ends.setdefault(int(request), []).append(end)

    def _advance(self, what: str, market: int, at: tuple[int, int]) -> None:
        if at < self.reached.get((what, market), (0, 0)):
            raise ViolationError(f"market {market}: the position of the {what} fell to {at}")
        self.reached[what, market] = at

    def _is_prefix(self, what: str, market: int, position: int, counts: dict[str, int]) -> None:
        if self.history.get(market, {0: Counter()}).get(position) != counts:
            raise ViolationError(
                f"market {market}: the {what} at {position} has other records than the log until there"
            )

    def _check_requests(self) -> None:
        """Check that acknowledged requests are stored once, and refused ones are not."""
        for request, answer in self.world.deliveries:
            number = int(json.loads(request.content)["records"][0]["time"])
            self.answers.setdefault(number, []).append(answer)
        self.world.deliveries.clear()
        for number, is_once in self.requested.items():
            ends, answers = self.ends.get(number, []), self.answers.get(number, [])
            stored = [answer["position"] for answer in answers if isinstance(answer, dict)]
            unknown = answers.count(None)  # the server crashed on the way
            least, most = len(stored), len(stored) + unknown
            if is_once:
                least, most = min(least, 1), min(most, 1)
            if not least <= len(ends) <= most or not set(stored) <= set(ends):
                raise ViolationError(f"request {number}: stored {len(ends)} times instead of {least} to {most}")
            if self.acknowledged.get(number, 0) not in [0, *ends]:
                raise ViolationError(f"request {number}: acknowledged, but not stored")


def play(steps: Sequence[Step], bug: str | None = None) -> Outcome:
    """Run a schedule, with a bug if one is named."""
    run, problem = Run(steps), ""
    with ExitStack() as stack:
        for change in BUGS[bug]() if bug else ():
            stack.enter_context(change)
        try:
            run.run()
        except ViolationError as violation:
            problem = str(violation)
        finally:
            run.close()
    return Outcome(problem, run.place, run.world.faults)


def play_seed(seed: int, bug: str | None = None) -> Outcome:
    """Run the schedule of a seed."""
    return play(schedule(seed), bug)


def shortest(steps: list[Step], bug: str | None = None) -> list[Step]:
    """Drop steps as long as the schedule still fails."""
    size = len(steps) // 2
    while size:
        place = 1  # the first step has the options
        while place < len(steps):
            fewer = steps[:place] + steps[place + size :]
            if play(fewer, bug).problem:
                steps = fewer
            else:
                place += size
        size //= 2
    return steps


def show_failure(seed: int, problem: str, bug: str | None) -> None:
    """Print a failure and the shortest schedule found."""
    print(f"seed {seed}: {problem}. Shortest schedule found:")
    for step in shortest(schedule(seed), bug):
        print(f"  {json.dumps(step)}")


def first_seed(bug: str, seeds: int) -> tuple[int, str] | None:
    """Return the first seed that finds a bug, and what it finds."""
    for seed in range(seeds):
        problem = play_seed(seed, bug).problem
        if problem:
            return seed, problem
    return None


def main() -> None:
    """Run many seeds, or one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many schedules to run")
    parser.add_argument("--seed", type=int, help="replay one schedule")
    parser.add_argument("--bug", choices=sorted(BUGS), help="put a known bug back, and stop at the seed that finds it")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.seed is not None:
        outcome = play_seed(given.seed, given.bug)
        print(f"seed {given.seed}: {outcome.steps} steps, {dict(sorted(outcome.faults.items()))}")
        if outcome.problem:
            show_failure(given.seed, outcome.problem, given.bug)
        sys.exit(bool(outcome.problem))
    if given.bug:
        found = first_seed(given.bug, given.seeds)
        print(
            f"{given.bug}: " + (f"not found by {given.seeds} seeds" if found is None else f"found by seed {found[0]}")
        )
        if found is not None:
            show_failure(*found, given.bug)
        sys.exit(found is None)
    sys.exit(_table(given.seeds, given.processes))


def _table(seeds: int, processes: int) -> bool:
    began, steps, faults, failures = time.perf_counter(), 0, Counter[str](), []
    with ProcessPoolExecutor(processes) as pool:
        for seed, outcome in enumerate(pool.map(play_seed, range(seeds), chunksize=20)):
            steps, faults = steps + outcome.steps, faults + outcome.faults
            failures += [(seed, outcome.problem)] if outcome.problem else []
    seconds = time.perf_counter() - began
    print("| | |\n|---|---|")
    for name, value in (("seeds", seeds), ("steps", steps), *sorted(faults.items()), ("failures", len(failures))):
        print(f"| {name} | {value:,} |")
    spent = sum(sum(getrusage(whose)[:2]) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN))
    print(f"{seconds:.0f} s in {processes} processes, {spent:.0f} CPU seconds, load {os.getloadavg()[0]:.1f}")
    for seed, problem in failures[:3]:
        show_failure(seed, problem, None)
    return bool(failures)


if __name__ == "__main__":
    main()
