"""Fuzz: every command on hostile files of every kind it reads, and on hostile options, in this process.

A case must end with exit code 0, 1 or 2 within 20 s of computing, without a traceback; what is wrong must be one
sentence or a usage line; no temporary file may be left, and what a command wrote must be whole: models and checkpoints
load, pictures end as they should, JSON is JSON. Every case has a number, and depends on nothing but that and the seed:
run ``python benchmarks/fuzz.py --cases 100000`` for all, ``--first 50000 --cases 50000`` for the second half, and
``--first 4711 --cases 1 --keep FOLDER`` to see one again. ``make fuzz`` runs 2,000 of them.
"""

import argparse
import faulthandler
import io
import json
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import hostile
from fuzz_commands import FILES, FLAGS, NAMES, NUMBERS, NUMERIC, PAIRS, PATHS, WORDS, WRITTEN
from rankstream.cli import main as command_line
from rankstream.models.files import load_model
from rankstream.streams.live import Live

LIMIT, WAITING = 20.0, 200.0  # seconds of computing, and on the clock, as others may be at work
GOOD = b"""offered,chosen,time,count
tea;nothing,tea,2024-01-05,6
tea;nothing,nothing,2024-02-05,4
pie;tea;rum,pie,2024-02-06,5
"""
METHODS = ("auto", "max-entropy", "nearest", "primal-dual", "mnl", "mnl", "latent-class", "markov-chain", "mle")


class Case(NamedTuple):
    """What is run: the words, and which file it reads is hostile."""

    number: int
    command: str
    kind: str
    words: list[str]


class Hung(BaseException):
    """A case took too long."""


def make(number: int, seed: int, folder: Path) -> Case:
    """A case, and its files in the folder."""
    command, kind = PAIRS[number % len(PAIRS)]
    random = Random(f"{seed} {number}")
    (folder / "good.csv").write_bytes(GOOD)
    (folder / "good.model").write_bytes(hostile.saved_models()[0])
    (folder / "good.items").write_text("item,margin\ntea,2\npie,3\nrum,4\nnothing,0\n")
    (folder / "good.jsonl").write_text('{"offered": ["tea", "nothing"], "chosen": "tea"}\n' * 5)
    odd = "good.csv" if kind == "options" else f"odd{kind}"
    if kind == ".npz":
        (folder / "out").mkdir()
        (folder / "out" / "state.npz").write_bytes(hostile.hostile(random, kind, "good.jsonl"))
    elif kind != "options":
        (folder / odd).write_bytes(hostile.hostile(random, kind))
    if command.startswith("serve"):
        hostile.write_service(folder / "shop", random if kind == ".sqlite3" else None)
    words = [*command.split(), *said(random, command, kind, odd)]
    if kind == "options" or random.random() < 0.15:
        words += options(random, command)
    return Case(number, command, kind, [*words, *random.choice([[], ["--json"]])])


def said(random: Random, command: str, kind: str, odd: str) -> list[str]:
    """The arguments that make a command read the hostile file."""
    skip = random.choice([[], [], ["--on-error", "skip"]])
    wide = [] if random.random() < 0.8 else random.choice([["--no-choice", "nothing"], ["--outside-share", "0.3"]])
    model = odd if kind == ".model" else "good.model"
    data = "good.csv" if kind in (".model", ".items", ".offers", "options") else odd
    if command == "fit" and random.random() < 0.15:
        few = ["--by", random.choice(["offered", "time", "count", "x"]), "--jobs", "1", "--method", "mnl"]
        return [data, "-o", "out", *few, *random.choice([[], ["--pool"]]), *skip]
    if command == "fit":
        return [data, "-o", "out.model", "--method", random.choice(METHODS), "--budget", "0.1", *skip, *wide]
    if command == "report":
        costs = ["--margins", odd if kind == ".items" else "good.items"] if random.random() < 0.5 else []
        page = random.choice(["missing/x.html", ".", "good.csv"]) if kind == ".html" else "out.html"
        quick = ["--replicates", "2", "--budget", "0.2"]
        less = random.choice([[], ["--no-intervals"]])
        return [model, "--data", "good.csv" if kind == ".html" else data, "-o", page, *costs, *quick, *less]
    if command.startswith("serve"):
        return served(random, command.removeprefix("serve "))
    if command == "open":
        return ["missing.csv"]  # what can be opened would be served until Ctrl-C
    if command == "predict":
        asked = ["--offers", odd] if kind == ".offers" else ["--offer", random.choice(["tea;pie", "tea;nothing"])]
        return [model, *asked, *(["--interval", "0.9", "--data", odd, *skip] if kind == ".csv" else [])]
    if command == "show":
        return [model]
    if command == "plot":
        shape = ["--kind", random.choice(["segments", "substitution"])] if kind in (".model", "options") else []
        drawn = shape or random.choice([["--kind", "shares"], ["--kind", "fit", "--data", odd]])
        first = model if shape or "fit" in drawn else odd
        return [first, "-o", random.choice(["out.png", "out.svg"]), *drawn, *(skip if not shape else [])]
    if command == "decide":
        table = odd if kind == ".items" else "good.items"
        more = ["--data", odd, random.choice(["--safe", "--next"])] if kind == ".csv" else []
        quick = ["--no-intervals"] if random.random() < 0.9 else []
        return [model, "--margins", table, "--budget", "0.2", *quick, *more]
    if command == "stream":
        source = "good.jsonl" if kind in (".npz", "options") else odd
        kept = [] if kind == ".npz" else random.choice([[], ["--detect"], ["--window", "5"]])
        return [source, "--out", "out", "--to-end", *kept, *skip]
    if command == "drift":
        pair = [odd, "good.model"] if kind == ".model" else [data, "good.csv"]
        return pair if random.random() < 0.7 or kind == ".model" else [data, "--at", "2024-02"]
    if command == "compare":
        return [
            data,
            "--models",
            random.choice(["mnl", "mnl", "nearest", "markov-chain"]),
            "--folds",
            "2",
            *skip,
            *wide,
        ]
    if command == "reproduce":
        return [odd, "--instances", "1", "--jobs", "1", "--out", "out"]
    return ["--max-rounds", "2", "--out", random.choice(["out", "good.csv", "good.csv/x"])]


def served(random: Random, command: str) -> list[str]:
    """The arguments of a command on a service's folder; ``run`` is given one that no server can begin in."""
    folder, market = random.choice(["shop", "shop", "missing", "good.csv", "."]), random.choice(["cafe", "x", "", ".."])
    return {
        "run": ["good.csv"],
        "backup": [folder, random.choice(["out.tar", "shop/log.sqlite3", "missing/x", "."])],
        "export": [folder, market, random.choice(["out.jsonl", "shop/log.sqlite3", "missing/x", "."])],
        "purge": [folder, market],
        "rebuild": [folder],
        "learn": [random.choice(["shop", "postgresql://x:y@z/w", "postgresql://shop@127.0.0.1:1/shop", ""])],
        "migrate": [folder, random.choice(["moved", "shop", "good.csv", "missing/x", "postgresql://"])],
        "token create": [folder],
        "token list": [folder],
        "token revoke": [folder, random.choice(["x", "", "a" * 300])],
    }[command]


def options(random: Random, command: str) -> list[str]:
    """A few options with values that people would not give."""
    found: list[str] = []
    tables = ((NUMERIC, NUMBERS), (WORDS, NAMES), (PATHS, FILES))
    kinds = [(table[command], values) for table, values in tables if command in table]
    for _ in range(random.randint(1, 2) if kinds else 0):
        names, values = random.choice(kinds)
        name = random.choice(names)
        found += [name, random.choice([one for one in values if one != "/dev/null" or name not in WRITTEN])]
    if command in FLAGS and random.random() < 0.3:
        found.append(random.choice(FLAGS[command]))
    if random.random() < 0.1:
        found.append(random.choice(["--bogus", "extra", "--help", "\ud800"]))
    return found


def play(case: Case, folder: Path) -> tuple[int, str, str]:
    """The exit code and what was printed; a traceback or a hang is code -1 and its text."""

    def stop(*_: object) -> None:
        raise Hung

    out, err, code = io.StringIO(), io.StringIO(), 0
    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGPROF, signal.SIGALRM)}
    faulthandler.dump_traceback_later(2.0 * WAITING, exit=True)  # where no signal is heard
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            command_line(case.words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Hung:
        return -1, "", f"no end after {LIMIT:.0f} s"
    except BaseException:
        return -1, "", traceback.format_exc()
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0.0)
        for kind, handler in before.items():
            signal.signal(kind, handler)
        faulthandler.cancel_dump_traceback_later()
    return code, out.getvalue(), err.getvalue()


def complaint(case: Case, folder: Path, code: int, out: str, err: str) -> str | None:
    """What is wrong with how a case ended; None if nothing is."""
    if code not in (0, 1, 2):
        return err if code == -1 else f"exit code {code}"
    left = [path.name for path in folder.rglob("*") if path.name.endswith(".tmp")]
    if left:
        return f"left {left}"
    if code == 2 and not any(line.startswith(("rankstream: ", "Usage: ", "╭─ Error")) for line in err.splitlines()):
        return f"code 2 without a sentence: {err!r}"
    if code == 0 and "--json" in case.words and "--help" not in case.words:
        try:
            _ = [json.loads(line) for line in out.splitlines()] if case.command == "stream" else json.loads(out)
        except ValueError:
            return f"not JSON: {out[:200]!r}"
    try:
        check_files(case, folder, code)
    except Exception as error:
        return f"a file is not whole: {type(error).__name__}: {error}"
    return None


def check_files(case: Case, folder: Path, code: int) -> None:
    """Refuse files that are there but cannot be read, and models that were not asked to be there."""
    for path in (folder / "out.model", folder / "out" / "model.json"):
        if path.exists():
            load_model(path)
    state = folder / "out" / "state.npz"
    if state.exists() and (case.kind != ".npz" or (code == 0 and "--help" not in case.words)):
        Live.load(state)
    for path in (*folder.glob("*.png"), *folder.glob("out/*.png"), *folder.glob("*.svg")):
        tail = path.read_bytes()[-12:].rstrip()
        if not tail.endswith((b"</svg>", b"IEND\xaeB`\x82")):
            raise ValueError(f"{path.name} has no end")
    page = folder / "out.html"
    if page.exists() and not page.read_text().rstrip().endswith("</html>"):
        raise ValueError(f"{page.name} has no end")
    if (
        case.command == "fit"
        and "--by" not in case.words
        and "--out" not in case.words
        and (code == 0) != (folder / "out.model").exists()
        and "--help" not in case.words
    ):
        raise ValueError(f"exit code {code}, and out.model is {'' if code else 'not '}there")


def main() -> None:
    """Run the cases, print what went wrong as it comes, then a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=len(PAIRS) * 20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="leave the files of the last case here")
    given = parser.parse_args()
    counts: dict[tuple[str, str], Counter[str]] = {pair: Counter() for pair in PAIRS}
    began = time.monotonic()
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))  # ends between two cases, with the table so far
    for number in range(given.first, given.first + given.cases):
        if stopped:
            break
        folder = Path(tempfile.mkdtemp(prefix="rankstream-fuzz-"))
        case = make(number, given.seed, folder)
        start = time.monotonic()
        code, out, err = play(case, folder)
        wrong = complaint(case, folder, code, out, err)
        found = counts[case.command, case.kind]
        found.update({"cases": 1, str(code): 1, "failures": int(wrong is not None)})
        found["seconds"] += int(1e6 * (time.monotonic() - start))
        if wrong is not None:
            print(f"case {number}, seed {given.seed}: {' '.join(case.words)!r}\n    {wrong.strip()}", flush=True)
        if number % 5000 == 4999:
            print(f"{number + 1 - given.first:,} cases in {time.monotonic() - began:,.0f} s", flush=True)
        if given.keep is not None and number == given.first + given.cases - 1:
            shutil.copytree(folder, given.keep, dirs_exist_ok=True)
            print(f"{case.words}\nexit code {code}\n{out}{err}")
        shutil.rmtree(folder)
    report(counts)
    sys.exit(any(found["failures"] for found in counts.values()))


def report(counts: dict[tuple[str, str], Any]) -> None:
    """A line for every command and kind, and one for all."""
    print(
        f"{'command':<20}{'reads':<12}{'cases':>8}{'code 0':>8}{'code 1':>8}{'code 2':>8}{'failures':>10}{'ms each':>9}"
    )
    total: Counter[str] = Counter()
    for (command, kind), found in counts.items():
        total += found
        row = "".join(f"{found[name]:>8,}" for name in ("cases", "0", "1", "2"))
        each = found["seconds"] / 1e3 / max(1, found["cases"])
        print(f"{command:<20}{kind:<12}{row}{found['failures']:>10}{each:>9.1f}")
    print(f"{'all':<32}{''.join(f'{total[name]:>8,}' for name in ('cases', '0', '1', '2'))}{total['failures']:>10}")


if __name__ == "__main__":
    main()
