"""Many markets, ended in the middle: by SIGKILL, by Ctrl-C, and a Dask worker by its process id."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import pytest

import rankstream as rs
from many_markets import Slow, choices, model_bytes
from waits import wait_for

STORES = [f"store {number}" for number in range(16)]
SCRIPT = """
import sys
from pathlib import Path
import rankstream as rs
from many_markets import Slow
if __name__ == "__main__":
    rs.estimate_many(Path("rows.parquet"), "store", Slow(), int(sys.argv[1]), "out", pool=False)
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("expected") / "out"
    rs.estimate_many(choices(STORES), "store", Slow(seconds=0.0), 1, out, pool=False)
    return model_bytes(out)


def started(folder: Path, n_jobs: int) -> subprocess.Popen[bytes]:
    """A run of its own process group, of which some markets are done."""
    choices(STORES).to_parquet(folder / "rows.parquet")
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(n_jobs)], cwd=folder, env=os.environ | {"PYTHONPATH": paths},
        start_new_session=True, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_for_markets(folder / "out", 5)
    return process


def wait_for_markets(out: Path, number: int) -> None:
    """Until as many markets are in the journal, which is written after their files."""
    journal = out / "journal.jsonl"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= number)


def resumed(folder: Path, expected: dict[str, bytes], n_jobs: int = 1) -> None:
    """What was there stays as it is, and the rest is added."""
    out = folder / "out"
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("store*.json")}
    assert 5 <= len(before) < len(STORES)
    markets = rs.estimate_many(folder / "rows.parquet", "store", Slow(), n_jobs, out, pool=False)
    assert model_bytes(out) == expected
    assert len(markets) == len(STORES)
    assert not list(out.glob(".*.tmp"))
    kept = [name for name, moment in before.items() if (out / name).stat().st_mtime_ns == moment]
    assert len(kept) >= len(before) - 1  # the last one may not have come to the journal


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path, expected: dict[str, bytes]) -> None:
    process = started(tmp_path, 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    resumed(tmp_path, expected)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupt_keeps_what_is_done(tmp_path: Path, expected: dict[str, bytes]) -> None:
    process = started(tmp_path, 1)
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate()[1]
    assert 5 <= len(rs.Markets.load(tmp_path / "out")) < len(STORES)
    assert not (tmp_path / "out" / "journal.jsonl").exists()
    resumed(tmp_path, expected)


def test_two_runs_on_one_folder_are_one_too_many(tmp_path: Path) -> None:
    process = started(tmp_path, 1)
    try:
        with pytest.raises(ValueError, match="Another process is writing to"):
            rs.estimate_many(tmp_path / "rows.parquet", "store", Slow(), 1, tmp_path / "out", pool=False)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_dask_worker_that_is_killed_costs_no_market(tmp_path: Path, expected: dict[str, bytes]) -> None:
    distributed = pytest.importorskip("distributed", reason='dask is not installed: pip install ".[cluster]"')
    out = tmp_path / "out"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = min(client.run(os.getpid).values())
        killed: list[int] = []

        def kill() -> None:
            wait_for_markets(out, 3)
            killed.append(len(model_bytes(out)))
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            markets = rs.estimate_many(choices(STORES), "store", Slow(seconds=0.2), -1, out, pool=False)
        killer.join()
        assert victim not in client.run(os.getpid).values()
    assert killed
    assert killed[0] < len(STORES)
    assert len(markets) == len(STORES)
    assert model_bytes(out) == expected
