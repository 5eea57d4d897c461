"""``rankstream stream`` with prices: in offers, in texts and in wide tables, resumed, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from priced_stream import LEVELS, choices, in_batches, records
from rankstream.streams.live import Live
from shell import run


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return path


def at_shell(*words: Any) -> Any:
    return run("stream", "--publish", "sparse", "--to-end", *map(str, words), cwd=Path.cwd())


GIVEN = ("--price-levels", json.dumps(LEVELS))


def test_the_shell_reads_prices_in_offers_and_resumes(tmp_path: Path) -> None:
    lines = choices(120)
    path, out = write(tmp_path / "shop.jsonl", lines[:60]), tmp_path / "live"
    assert at_shell(path, "--out", out, *GIVEN).returncode == 0
    write(path, lines)
    resumed = at_shell(path, "--out", out)
    assert "Resuming after 60 records" in resumed.stdout
    live, whole = Live.load(out / "state.npz"), in_batches(Live(prices=LEVELS, publish="sparse"), records(120), 60)
    assert live.counts is not None
    assert whole.counts is not None
    assert live.counts.digest() == whole.counts.digest()
    asked = run("predict", str(out / "model.json"), "--offer", "tea@3.50;cake@4;nothing", "--json", cwd=tmp_path)
    assert asked.returncode == 0, asked.stdout
    other = at_shell(path, "--out", out, "--price-levels", '{"tea": [3, 4]}')
    assert other.returncode == 2
    assert "was started with prices PriceLevels(tea: 3.00, 3.50, 4.00; cake: 4.00, 5.00), not Price" in other.stderr


def test_the_shell_reads_prices_of_texts_and_of_wide_tables(tmp_path: Path) -> None:
    texts = [
        {"offered": ["tea@3.50", "nothing"], "chosen": "tea"},
        {"offered": "tea@3.4;nothing", "chosen": "tea@3.4"},
        {"offered": {"tea": 3.5}, "chosen": None},
    ]
    tables = ["price_tea,p2,nothing,chosen", "3.5,,1,tea", "3.5,,1,tea", "3.5,,1,nothing"]
    first = at_shell(write(tmp_path / "a.jsonl", texts), "--out", tmp_path / "a", "--no-choice", "nothing", *GIVEN)
    assert first.returncode == 0, first.stderr
    columns = ("--price-columns", "tea=price_tea,cake=p2")
    second = at_shell(write(tmp_path / "b.csv", tables), "--out", tmp_path / "b", *columns, *GIVEN)
    assert second.returncode == 0, second.stderr
    found = [Live.load(tmp_path / name / "state.npz").counts for name in "ab"]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].assortments.offers == (("tea @ 3.50", "nothing"),)
    assert found[0].tallies.tolist() == [2.0, 1.0]
    assert found[1].digest() == found[0].digest()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "line 1: its offer {'tea': 9} has prices, but no price levels were given"),
        (("--price-levels", "3"), "needs its levels before the first record: give them as JSON"),
        (("--price-columns", "offered"), "A stream needs its price levels before the first record"),
        (("--price-columns", "p1", *GIVEN), "has no price column 'p1'"),
        (GIVEN, "line 1: the price 9 of 'tea' is outside its levels, which cover 3 to 4"),
    ],
)
def test_what_the_shell_refuses(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path / "shop.jsonl", [{"offered": {"tea": 9}, "chosen": "tea"}])
    refused = at_shell(path, "--out", tmp_path / "live", *words)
    assert refused.returncode == 2
    assert sentence in refused.stderr.replace("\n", " ")
    skipped = at_shell(path, "--out", tmp_path / "skipped", "--on-error", "skip", "--json", *GIVEN)
    assert json.loads(skipped.stdout)["skipped"] == 1
