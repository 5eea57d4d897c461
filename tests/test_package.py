import subprocess
import sys

import pytest

import rankstream


def test_public_names_are_these() -> None:
    assert set(rankstream.__all__) == {
        *("Assortments", "ChoiceCounts", "estimate", "Estimate", "Solver", "RankingModel", "Certificate"),
        *("RankingChoiceModel", "simulate", "distances", "learners", "oracles", "checks", "certificate"),
        *(
            "EntropyModel",
            "entropy",
            "baselines",
            "evaluate",
            "intervals",
            "rationality",
            "revenue_range",
            "probability_range",
        ),
        *("read", "read_counts", "load_model", "plots"),
    }
    assert all(hasattr(rankstream, name) for name in rankstream.__all__)
    assert dir(rankstream) == sorted(rankstream.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = rankstream.nonsense


def test_import_is_light() -> None:
    code = "import sys, rankstream; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sklearn", "matplotlib", "pandas", "highspy", "duckdb", "joblib", "typer", "rich"} & set(loaded)


def test_kernels_work_without_a_cache_directory() -> None:
    code = """
import numba
from numba.core import caching
caching.CacheImpl._locator_classes = []
import rankstream as rs
print(rs.oracles.auto(rs.Assortments([("a", "b")])).cheapest([1.0, 0.0]).value)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0.0", done.stderr
