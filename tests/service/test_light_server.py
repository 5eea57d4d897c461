"""What a server costs before its first model: the modules that it loads, and its processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_service import CAFE
from service import Served
from start import SERVER, processes_of
from waits import patient_client, wait_for

pytestmark = pytest.mark.server
HEAVY = ("numba", "scipy", "matplotlib", "sklearn", "duckdb")


def test_the_server_loads_few_modules(tmp_path: Path) -> None:
    """It checks records by their rules alone: no learner, no solver, nothing that is compiled."""
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    modules = done.stdout.split("\n")[0].split()
    ours = [name for name in modules if name.partition(".")[0] == "rankstream"]
    assert len(ours) < 100
    assert not {"rankstream.streams.live", "rankstream.solver.loop", "rankstream.models.rankings"} & set(ours)
    assert not set(HEAVY) & {name.partition(".")[0] for name in modules}


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="The system does not list processes in files.")
def test_a_shop_has_at_most_five_processes(tmp_path: Path) -> None:
    served = Served(tmp_path / "shop")
    try:
        assert served.process is not None
        served.pids()
        assert len(processes_of(served.process.pid)) <= 3  # and a refresher, if it is quick
        with patient_client(served.url) as client:
            client.send("cafe", CAFE * 3)
            client.send("large", CAFE * 200)  # another process reads it
            wait_for(lambda: client.markets()[0]["kind"] == "max-entropy")
            assert client.predict("cafe", [["tea", "nothing"]])
            assert client.decide("cafe", {"tea": 1.0, "pie": 3.0, "cake": 2.0})["proven"]
            assert client.segments("cafe")
            assert client.drift("cafe")["tested"] == 2
            wait_for(lambda: client.predictions("cafe", [["tea"]], 0.95)["predictions"][0]["intervals"])
            assert 4 <= len(processes_of(served.process.pid)) <= 5
            own = os.getpriority(os.PRIO_PROCESS, served.process.pid)
            for pid in processes_of(served.process.pid):  # the good model does not wait behind everything else
                assert os.getpriority(os.PRIO_PROCESS, pid) <= own + 5
    finally:
        assert served.stop() == 0
