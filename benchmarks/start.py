"""How long a user waits: import, first fit with an empty and with a filled compilation cache, and the quick commands.

For the commands: CPU seconds of a new process, start of Python included, the modules of ours that it loads, and which
of the heavy packages. For a service before its first request: the modules of ours in the server, its memory, and all
processes of a shop with theirs. Run with ``python benchmarks/start.py``.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import rankstream as rs
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import plackett_luce

IMPORT = "import rankstream"
FIT = """
import rankstream as rs
market = rs.simulate.market(0)
assert rs.estimate(market.assortments, market.frequencies(), method="primal-dual").converged
"""
COMMAND = """
import sys, rankstream.cli
try:
    rankstream.cli.main({words!r})
finally:
    ours = sum(name.split(".")[0] == "rankstream" for name in sys.modules)
    heavy = [name for name in {heavy!r} if name in sys.modules]
    print(ours, *heavy, file=sys.stderr)
"""
SERVER = """
import sys
from pathlib import Path
import rankstream.cli, rankstream.cli.app, rankstream.cli.serve
from rankstream.service.run import make_app
from rankstream.service import run
from rankstream.service.hub import Options, Service
service = Service(Path(sys.argv[1]), Options())
make_app(service)
service.close()
print(*sys.modules)
"""
"""What ``rankstream serve run`` does before it takes requests, except for starting the learner."""
HEAVY = ("numba", "scipy.optimize", "sklearn", "matplotlib", "duckdb")


def seconds(code: str, cache: str) -> float:
    """The time of a new Python process, its start included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def cpu_seconds(code: str) -> tuple[float, str]:
    """The CPU time of a new Python process, and the last line that it wrote to standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, (done.stderr.strip().splitlines() or [""])[-1]


def processes_of(pid: int) -> dict[int, int]:
    """A process and all that it started, directly or not, with the kilobytes that each has to itself or shares."""
    found, parents = dict[int, int](), dict[int, int]()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:  # it has just ended
            continue
        parents[int(facts["Pid"])] = int(facts["PPid"])
        found[int(facts["Pid"])] = int(facts.get("VmRSS", "0 kB").split()[0])
    ours = {pid}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {one: found[one] for one in ours if one in found}


def service(folder: Path) -> None:
    """Print the modules of the server, and the memory of a shop before its first model."""
    folder.mkdir()
    listed = subprocess.run([sys.executable, "-c", SERVER, str(folder)], check=True, capture_output=True, text=True)
    modules = listed.stdout.split()
    print(f"server: {sum(name.split('.')[0] == 'rankstream' for name in modules)} modules of ours, of {len(modules)}")
    command = [sys.executable, "-m", "rankstream", "serve", "run", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        time.sleep(10.0)  # the learner has read all its modules by then
        memory = processes_of(server.pid)
        print(f"server before its first request: {memory[server.pid] / 1000:.0f} MB")
        print(f"shop before its first model: {len(memory)} processes, {sum(memory.values()) / 1000:.0f} MB in all")
        server.terminate()


def save_large(path: Path) -> Path:
    """Write a maximum-entropy model whose program is too large to be run as Python: 40 classes, 40 offers, no fit."""
    market, random = rs.simulate.market(1, n_items=15, n_offers=40), np.random.default_rng(0)
    offers = market.assortments
    law = plackett_luce(offers.items, random.exponential(size=(40, offers.n_items)), np.full(40, 1 / 40))
    EntropyModel(law, offers, 0.1 * random.normal(size=offers.n_coordinates)).save(path)
    return path


def main() -> None:
    """Print one line per kind of start."""
    with tempfile.TemporaryDirectory() as cache:
        seconds(IMPORT, cache)
        empty = min(seconds("pass", cache) for _ in range(3))
        print(f"import rankstream       {min(seconds(IMPORT, cache) for _ in range(3)) - empty:6.2f} s")
        print(f"first fit, cold cache   {seconds(FIT, cache):6.2f} s")
        print(f"first fit, warm cache   {min(seconds(FIT, cache) for _ in range(3)):6.2f} s")
        market = rs.simulate.market(0)
        sparse, dense = Path(cache) / "sparse.json", Path(cache) / "dense.json"
        rs.estimate(market.assortments, market.frequencies(), method="primal-dual").model.save(sparse)
        rs.estimate(market.assortments, market.frequencies(), method="max-entropy").model.save(dense)
        large = save_large(Path(cache) / "large.json")
        items = Path(cache) / "items.csv"
        items.write_text("item,margin\n" + "".join(f"{item},1\n" for item in market.truth.items[:-1]), encoding="utf-8")
        offer = ";".join(map(str, market.assortments.offers[0]))
        everything, _ = min(cpu_seconds("import numba, scipy.optimize, sklearn, matplotlib, duckdb") for _ in range(3))
        print(f"importing {', '.join(HEAVY)}: {everything:.2f} CPU s; and of that")
        for name, words in (
            ("predict, rankings", ["predict", str(sparse), "--offer", offer]),
            ("predict, max-entropy", ["predict", str(dense), "--offer", offer]),
            ("predict, 16 items", ["predict", str(large), "--offer", "item 1;item 2;nothing"]),
            ("decide, rankings", ["decide", str(sparse), "--margins", str(items)]),
            ("show, rankings", ["show", str(sparse)]),
            ("show, max-entropy", ["show", str(dense)]),
            ("--help", ["--help"]),
        ):
            used, loaded = min(cpu_seconds(COMMAND.format(words=words, heavy=HEAVY)) for _ in range(3))
            number, *heavy = loaded.split()
            print(
                f"{name:<22}{used:6.2f} CPU s ({used / everything:4.0%}), {number} modules of ours, "
                f"{' and '.join(heavy) or 'none of these'}"
            )
        service(Path(cache) / "shop")


if __name__ == "__main__":
    main()
