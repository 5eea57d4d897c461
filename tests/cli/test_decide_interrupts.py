"""Ctrl-C while something is decided: the best so far with its bound, exit code 0, and whole documents."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe_counts import MARGINS as SOLD
from cafe_counts import counts
from decide_shell import call, folder
from rankstream import RankingModel
from rankstream.decide import best_offer, next_offer
from rankstream.decide import next as learning
from rankstream.decide.engines import branch
from rankstream.estimation import intervals
from strategies import compiled_only

__all__ = ["folder"]


def pressing(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, time: int = 1) -> list[dict[str, Any]]:
    """Ctrl-C is pressed when a function is called for the given time; the keywords of all its calls."""
    before: Callable[..., Any] = getattr(owner, name)
    calls: list[dict[str, Any]] = []

    def pressed(*words: Any, **more: Any) -> Any:
        calls.append(more)
        if len(calls) == time:
            os.kill(os.getpid(), signal.SIGINT)
        return before(*words, **more)

    monkeypatch.setattr(owner, name, pressed)
    return calls


@pytest.mark.slow
@compiled_only
def test_a_search_ends_with_the_best_so_far_and_its_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    orders = np.array([random.permutation(71) for _ in range(900)])
    RankingModel.from_codes(range(71), orders, np.full(900, 1 / 900), 70).save(folder / "model.json")
    lines = [f"{item},{value}" for item, value in enumerate(random.uniform(size=70))]
    (folder / "items.csv").write_text("\n".join(["item,margin", *lines]))
    pressing(monkeypatch, branch.Branching, "_explore", 3)
    done = call(folder, "--at-most", "12", "--budget", "120", "--top", 1, "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert "best so far" in done.stderr
    assert not found["proven"]
    assert found["bound"] > found["value"] > 0.5


def test_intervals_that_are_not_done_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressing(monkeypatch, intervals, "resample")
    picture = folder / "decision.png"
    done = call(folder, "--data", "DATA", "--at-most", 2, "--json", "--plot", picture)
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert "best so far" in done.stderr
    assert found["proven"]
    assert "interval" not in found
    assert "lead" not in found
    assert picture.stat().st_size > 10_000
    assert [path.name for path in folder.iterdir() if "decision" in path.name] == ["decision.png"]


@pytest.mark.parametrize("how", ["thompson", "ucb"])
def test_the_next_offer_is_that_of_the_fit_so_far(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    calls = pressing(monkeypatch, learning, "fit_quick_stack")
    done = call(folder, "--data", "DATA", "--next", "--strategy", how, "--at-most", 2, "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert "best so far" in done.stderr
    assert len(found["offer"]) <= 2
    assert found["decision"]["bound"] >= found["decision"]["value"]
    assert len(calls) == 1  # nothing is redrawn after that
    assert calls[0]["watch"]("the guides, too, hear that it is enough")


def test_pressing_twice_ends_without_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressing(monkeypatch, intervals, "resample")
    pressing(monkeypatch, intervals, "resample")
    done = call(folder, "--data", "DATA", "--json", "--plot", folder / "decision.png")
    assert done.exit_code == 130  # main() makes it 1
    assert done.stdout == ""
    assert not (folder / "decision.png").exists()


def test_a_watch_hears_of_refits_and_redraws_and_may_end_them() -> None:
    heard: list[str] = []

    def watch(text: str, share: float = 1.0) -> bool:
        heard.append(text)
        return share < 0.0

    data = counts()
    boot = intervals.Bootstrap(data, "mnl", replicates=2)
    full = best_offer(boot.model, SOLD, counts=data, watch=watch)
    assert full.interval is not None
    assert "refitted 20 of 20 times" in heard
    cut = best_offer(boot.model, SOLD, counts=data, watch=lambda text, _=1.0: text.startswith("refitted 3"))
    assert cut.interval is None
    assert cut.lead is None
    assert cut.offer == full.offer
    next_offer(data, SOLD, "ucb", method="mnl", redraws=3, watch=watch)
    assert "redrawn 2 of 3 times" in heard
    greedy = next_offer(data, SOLD, "greedy", method="mnl")
    ended = next_offer(data, SOLD, "ucb", method="mnl", redraws=3, watch=lambda text, _=1.0: "redrawn" in text)
    assert ended.offer == greedy.offer  # nothing was redrawn: nothing is added
