"""Files that version 0.2 wrote are still read, and its streams go on where they stopped: see golden/README.md."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from shell import run

FOLDER = Path(__file__).parents[1] / "golden" / "v0.2"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
MODELS: dict[str, dict[str, Any]] = EXPECTED["models"]
STREAMS: dict[str, dict[str, Any]] = EXPECTED["streams"]
EXACT = 1e-9
OTHER_ROUNDS = 0.05  # of a probability: another version may play other rounds
OTHER_DRAWS = 0.08  # of a share among 1,000 rankings drawn at random
LATER = 80  # choices: so much earlier or later may a change be noticed

Tallies = dict[frozenset[object], dict[object, float]]


def check_predictions(model: Any, offers: list[list[tuple[Any, float]]], within: float) -> None:
    for offer in offers:
        found = model.predict([item for item, _ in offer], forced=True)
        assert found == pytest.approx(dict(offer), rel=0.0, abs=within)


def test_every_golden_file_is_checked() -> None:
    assert {path.name for path in (FOLDER / "models").iterdir()} == {f"{name}.json" for name in MODELS}
    assert {path.name for path in (FOLDER / "streams").iterdir()} == set(STREAMS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_gives_the_same_answers(name: str) -> None:
    model, then = rs.load_model(FOLDER / "models" / f"{name}.json"), MODELS[name]
    assert type(model).__name__ == then["kind"]
    assert model.items == tuple(then["items"])
    assert list(map(type, model.items)) == list(map(type, then["items"]))
    assert model.no_choice_code == then["no_choice"]
    check_predictions(model, then["seen"], EXACT)
    check_predictions(model, then["unseen"], EXACT)
    for answer in then["substitution"]:
        found = model.substitution(answer["offer"])
        assert list(found.items) == answer["offer"]
        np.testing.assert_allclose(found.before, answer["before"], rtol=0.0, atol=EXACT)
        np.testing.assert_allclose(found.shares, answer["shares"], rtol=0.0, atol=EXACT)
    types = [(tuple(ranking), share) for ranking, share in then["segments"]]
    if isinstance(model, rs.RankingModel):
        assert len(model.weights) == then["rankings"]
        assert model.describe(len(then["describe"])) == then["describe"]
        segments = model.segments(len(types))
        assert [segment.ranking for segment in segments] == [ranking for ranking, _ in types]
        assert [segment.share for segment in segments] == pytest.approx([share for _, share in types], abs=EXACT)
    else:
        shares = {segment.ranking: segment.share for segment in model.segments()}
        for ranking, share in types:
            assert shares.get(ranking, 0.0) == pytest.approx(share, abs=OTHER_DRAWS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_can_be_saved_again(name: str, tmp_path: Path) -> None:
    rs.load_model(FOLDER / "models" / f"{name}.json").save(tmp_path / "again.json")
    again = rs.load_model(tmp_path / "again.json")
    check_predictions(again, [*MODELS[name]["seen"], *MODELS[name]["unseen"]], EXACT)


def begun(name: str, tmp_path: Path) -> Path:
    """A copy of a stream that has stopped: its source, and the folder of its state and model."""
    return Path(shutil.copytree(FOLDER / "streams" / name, tmp_path / name))


def go_on(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Follow the source, by the name that it had, to its end; returns what was told."""
    done = run("stream", "source.jsonl", "--out", "out", "--to-end", "--json", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def state(folder: Path) -> dict[str, Any]:
    """The arrays of a state file, and its header, which is JSON."""
    with np.load(folder / "out" / "state.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    return {**arrays, "header": json.loads(arrays["header"].tobytes())}


def check_same(new: Any, old: Any, name: str = "state") -> None:
    """Whatever both files hold is the same; what a later version leaves out or adds is its own affair."""
    if isinstance(old, dict):
        for key in old.keys() & new.keys():
            check_same(new[key], old[key], f"{name}, {key}")
    elif isinstance(old, list):
        assert len(new) == len(old), name
        check_same(dict(enumerate(new)), dict(enumerate(old)), name)
    elif isinstance(old, np.ndarray):
        np.testing.assert_array_equal(new, old, err_msg=name)
    elif name != "state, header, version":
        assert new == old, name


def without_copy(whole: dict[str, Any]) -> dict[str, Any]:
    """What is left of a state where the copy of a change detector is counts alone, and choices no longer wait."""
    if "watched" not in whole["header"]["more"]:
        return whole
    header = whole["header"] | {"runs": whole["header"]["runs"][:1], "more": {}}
    return {name: whole[name] for name in whole if name[:1] == "0" and name[:9] != "0.counts."} | {"header": header}


def kept(folder: Path) -> tuple[Tallies, list[list[int]]]:
    """The counts of every offer, and the places of the changes, as the state file has them."""
    whole = state(folder)
    header, arrays = whole["header"], {name.removeprefix("0."): whole[name] for name in whole if name.startswith("0.")}
    if "counts.tallies" in arrays:
        tallies = arrays["counts.tallies"]
    else:  # a window keeps its records
        where, amounts = arrays["counts.where"], arrays["counts.amounts"]
        tallies = np.bincount(where, weights=amounts, minlength=len(arrays["members"]))
    items = [header["runs"][0]["items"][code] for code in arrays["members"].tolist()]
    parts = [slice(*ends) for ends in pairwise(arrays["indptr"].tolist())]
    counts = {frozenset(items[part]): dict(zip(items[part], tallies[part].tolist(), strict=True)) for part in parts}
    watched = header["more"].get("watched")
    return counts, [[alarm["record"], alarm["since"]] for alarm in watched["found"]["alarms"]] if watched else []


def check_counts(found: Tallies, then: list[list[tuple[object, float]]], options: list[str]) -> None:
    """The counts are those of then; with a change detector, up to two blocks of 50 choices waited then."""
    fade = "--half-life" in options or "--detect" in options
    expected = {frozenset(item for item, _ in offer): dict(offer) for offer in then}
    assert found.keys() == expected.keys()
    if "--detect" in options:
        more = [tallies[item] - expected[offer][item] for offer, tallies in found.items() for item in tallies]
        assert min(more) > -EXACT
        assert -EXACT < sum(more) < 100
        return
    for offer, tallies in found.items():
        assert tallies == pytest.approx(expected[offer], rel=EXACT if fade else 0.0, abs=0.0)


def check_told(told: dict[str, Any], then: dict[str, Any]) -> None:
    for name in ("records", "line", "skipped", "offers", "items", "rankings"):
        if name in then:
            assert told[name] == then[name], name
    if "alarms" in then:
        assert told["alarms"] == len(then["alarms"])


@pytest.mark.parametrize("name", STREAMS)
def test_a_stopped_stream_is_read_and_written_as_it_was(name: str, tmp_path: Path) -> None:
    folder, then = begun(name, tmp_path), STREAMS[name]["stop"]
    check_predictions(rs.load_model(folder / "out" / "model.json"), [*then["seen"], *then["unseen"]], EXACT)
    (folder / "out" / "model.json").unlink()
    told = go_on(folder)  # nothing new, and all settings from the file
    check_told(told[-1], then)
    assert not any(line.get("changes") for line in told)
    counts, alarms = kept(folder)
    check_counts(counts, then["counts"], STREAMS[name]["options"])
    assert alarms == then.get("alarms", [])
    check_same(without_copy(state(folder)), without_copy(state(FOLDER / "streams" / name)))
    check_predictions(rs.load_model(folder / "out" / "model.json"), [*then["seen"], *then["unseen"]], EXACT)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stopped_stream_goes_on(name: str, tmp_path: Path) -> None:
    folder, options, then = begun(name, tmp_path), STREAMS[name]["options"], STREAMS[name]["end"]
    with (folder / "source.jsonl").open("ab") as source:
        source.write((folder / "more.jsonl").read_bytes())
    told = go_on(folder, *options)
    check_told(told[-1], then)
    if "changes" not in then:  # with a change detector, rounds were played for every block and now are for every batch
        check_predictions(rs.load_model(folder / "out" / "model.json"), then["seen"], OTHER_ROUNDS)
    counts, alarms = kept(folder)
    if "changes" in then:
        before = STREAMS[name]["stop"]["alarms"]
        assert alarms[: len(before)] == before
        records = [change["record"] for line in told for change in line["changes"]]
        assert records == [record for record, _ in alarms[len(before) :]]
        assert records == pytest.approx([record for record, _ in then["changes"]], rel=0.0, abs=LATER)
    if not then.get("changes"):  # at a change the counts begin again, at a place that other rounds may move
        check_counts(counts, then["counts"], options)
