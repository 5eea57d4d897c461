"""The benchmark that holds advice against a known truth: it follows the README's path, and notices what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

import advice
from shell import run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Commands run in this process, with logits instead of maximum entropy; returns what was run."""
    commands: list[tuple[str, ...]] = []

    def in_process(folder: Path, *words: str) -> tuple[dict[str, Any], float]:
        commands.append(words)
        method = "mnl-price" if "--price-columns" in words else "mnl"
        done = run(*words, *(("--method", method) if words[0] == "fit" else ()), "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout), "said": done.stderr}, 1.0

    monkeypatch.setattr(advice, "run", in_process)
    return commands


@pytest.mark.slow
def test_the_path_is_followed_with_and_without_prices(quick: list[tuple[str, ...]], tmp_path: Path) -> None:
    shop = advice.Shop(1)
    advice.write_exports(tmp_path, shop, 3000)
    found = {priced: advice.follow(shop, tmp_path, "till", priced) for priced in (False, True)}
    assert [words[0] for words in quick] == ["fit", "decide", "show"] * 2
    assert found[False].warned
    assert not found[True].warned
    for outcome in found.values():
        assert outcome.interval is not None
        assert 0.0 < outcome.true <= outcome.best + 1e-9
        assert outcome.seconds == 3.0
        assert outcome.substitutes[1] == len(advice.NAMES)
    assert found[True].true > found[True].today
    today = advice._prices([str(item) for item in shop.today()])
    assert 0.0 < 100 * shop.profit(today) < found[True].best


def test_a_row_has_what_is_claimed_and_what_is_true() -> None:
    outcome = advice.Outcome(80.0, (70.0, 90.0), 60.0, 50.0, 75.0, True, (3, 14), (12, 15), 9.0, ("tea",))
    row = advice.line(2, "till", True, 6, outcome)
    for words in ("used", "80.0", "[70.0, 90.0]", "60.0", "50.0", "75.0", "80.0%", "yes", "3 of 14", "12 of 15"):
        assert words in row
    assert len(advice.HEAD.split("|")) == len(row.split("|")) == 3
