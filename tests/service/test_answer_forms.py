"""One answer, one form: what the shell prints with --json and what the service sends have the same keys and units."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_service import CAFE, CAKE, PIE, TEA, Shop, drawn, shop
from rankstream.service import intervals
from rankstream.service.storage import maintenance
from shell import run
from waits import wait_for

ENVELOPE = {"market", "model"}
TIMED = ("seconds",)


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A market whose choices change, and its model and records as files for the shell."""
    with shop(tmp_path_factory.mktemp("service") / "shop") as opened:
        drawn(opened)
        opened.send("cafe", CAFE * 3 + [PIE] * 60 + [{**PIE, "chosen": "nothing"}] * 20 + [CAKE] * 28)
        opened.settle("cafe", no_choice="nothing")
        opened.learn()
        folder = opened.folder.parent
        (folder / "model.json").write_bytes(opened.get("/cafe/model").content)
        (folder / "items.csv").write_text("item,margin\ntea,1\npie,3\ncake,2\n")
        maintenance.export(opened.folder, "cafe", folder / "all.jsonl")
        lines = (folder / "all.jsonl").read_text().splitlines(keepends=True)
        (folder / "before.jsonl").write_text("".join(lines[: len(lines) // 2]))
        (folder / "after.jsonl").write_text("".join(lines[len(lines) // 2 :]))
        yield opened


def shell(one: Shop, *words: str, code: int = 0) -> Any:
    done = run(*words, "--json", cwd=one.folder.parent)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def same(first: Any, second: Any) -> None:
    """Equal, but for times on the clock and rounding in the last digits."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for name in first:
            if name not in TIMED:
                same(first[name], second[name])
    elif isinstance(first, list):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    else:
        assert first == (pytest.approx(second, abs=1e-9) if isinstance(second, float) else second)


def test_predictions(cafe: Shop) -> None:
    offers = [["tea", "pie"], ["cake", "nothing"]]
    sent = cafe.post("/cafe/predict", {"offers": offers}).json()
    words = [word for offer in offers for word in ("--offer", ";".join(offer))]
    same(shell(cafe, "predict", "model.json", *words), sent["predictions"])
    assert sent["predictions"][0]["added"] == ["nothing"]
    assert sent.keys() == ENVELOPE | {"provisional", "predictions"}
    assert sent["provisional"] is False


def test_predictions_with_intervals(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MAX_WAIT_SECONDS", 0.01)
    question = {"offers": [["tea", "pie"], ["cake", "nothing"]], "interval": 0.9}
    first = cafe.post("/cafe/predict", question).json()
    assert first["intervals"] == "not yet"
    assert [one["intervals"] for one in first["predictions"]] == [None, None]
    found: list[Any] = []

    def is_there() -> bool:
        found.append(cafe.post("/cafe/predict", question).json())
        return "from refits of the model at record" in found[-1]["intervals"]

    wait_for(is_there)
    words = ["--interval", "0.9", "--data", "all.jsonl", "--no-choice", "nothing", "--replicates", "20"]
    printed = shell(cafe, "predict", "model.json", "--offer", "tea;pie", "--offer", "cake;nothing", *words)
    for one, other in zip(found[-1]["predictions"], printed, strict=True):
        assert one.keys() == other.keys()
        same(one["shares"], other["shares"])
        for item, (low, high) in one["intervals"].items():
            assert low <= one["shares"][item] <= high
            assert other["intervals"][item] == pytest.approx([low, high], abs=0.1)  # other simulated choices
    wide = {**question, "interval": 0.999}
    wait_for(lambda: cafe.post("/cafe/predict", wide).json()["predictions"][0]["intervals"] is not None)
    ends = cafe.post("/cafe/predict", wide).json()["predictions"][0]["intervals"]["tea"]
    narrow = found[-1]["predictions"][0]["intervals"]["tea"]
    assert ends[0] <= narrow[0] < narrow[1] <= ends[1]
    assert ends[1] - ends[0] > narrow[1] - narrow[0]
    assert cafe.post("/cafe/predict", {**question, "interval": 1.5}).status_code == 422


def test_segments_and_substitution(cafe: Shop) -> None:
    printed = shell(cafe, "show", "model.json", "--top", "3")
    for path, names in (("segments?top=3", {"segments_by", "segments"}), ("substitution", {"items"})):
        sent = cafe.get(f"/cafe/{path}").json()
        assert sent.keys() == ENVELOPE | names
        same({name: sent[name] for name in names}, {name: printed[name] for name in names})


def test_decisions(cafe: Shop) -> None:
    margins = {"tea": 1, "pie": 3, "cake": 2}
    question = {"margins": margins, "at_most": 1, "top": 3, "no_choice": "nothing"}
    sent = cafe.post("/cafe/decide", question).json()["decision"]
    words = ["--margins", "items.csv", "--at-most", "1", "--no-intervals", "--data", "all.jsonl"]
    same(shell(cafe, "decide", "model.json", *words), sent)
    near = sent["context"]["nearness"]
    assert (near["fewest"], near["most"], near["is_extrapolation"]) == (1, 2, False)
    far = cafe.post("/cafe/decide", {**question, "at_most": 3, "must": ["tea", "pie", "cake"]}).json()["decision"]
    assert far["context"]["nearness"]["is_extrapolation"]
    following = cafe.post("/cafe/next-offer", {"margins": margins, "how": "greedy", "no_choice": "nothing"}).json()
    data = ["--next", "--strategy", "greedy", "--data", "all.jsonl", "--no-choice", "nothing"]
    printed = shell(cafe, "decide", "model.json", "--margins", "items.csv", *data)
    assert printed.keys() == following["decision"].keys()
    assert printed["decision"].keys() >= following["decision"]["decision"].keys() - {"context"}


def test_drift(cafe: Shop) -> None:
    sent = cafe.get("/cafe/drift").json()
    own = {name: value for name, value in sent.items() if name not in ("market", "before", "after")}
    printed = shell(cafe, "drift", "before.jsonl", "after.jsonl")
    for one in (*own["offers"], *printed["offers"]):
        one["offer"].sort()  # the shell sorts the items of an offer, the service has them as they were sent
    same(printed, own)
    assert own["changed"]
    assert (sent["before"], sent["after"]) == (108, 108)


def test_certificates(cafe: Shop) -> None:
    sent = cafe.get("/cafe/certificate").json()
    printed = shell(cafe, "fit", "all.jsonl", "--no-choice", "nothing", "--out", "fitted.json", "--no-standard-errors")
    assert {"distance", "proven_least_distance", "gap", "choices"} <= sent.keys() & printed.keys()
    assert sent["distance"] - sent["proven_least_distance"] == pytest.approx(sent["gap"])
    assert sent["choices"] == printed["choices"]


def form(answer: Any) -> Any:
    """The keys and kinds of an answer; of a list, those of its first value."""
    if isinstance(answer, dict):
        return {name: form(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [form(one) for one in answer[:1]]
    return "number" if isinstance(answer, int | float) and not isinstance(answer, bool) else type(answer).__name__


@pytest.fixture(scope="module")
def stores(cafe: Shop) -> Path:
    """A folder of two markets: one with all records of the service's, one with those of tea and pie alone."""
    folder = cafe.folder.parent
    records = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
    rows = [{**one, "store": "old"} for one in records]
    rows += [{**one, "store": "new"} for one in records if "cake" not in one["offered"]]
    rows += [{"offered": [item, "nothing"], "chosen": item, "store": "new"} for item in ("tea", "pie") * 3]
    (folder / "stores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    words = ["--by", "store", "--out", "stores", "--no-choice", "nothing", "--method", "max-entropy", "--jobs", "1"]
    words += ["--no-standard-errors"]  # the service has none yet either: its refits run in the background
    found = shell(cafe, "fit", "stores.jsonl", *words)
    assert (found["fitted"], found["failed"]) == (2, [])
    return folder / "stores"


def test_many_markets_have_the_form_of_one(cafe: Shop, stores: Path) -> None:
    folder = stores.name
    sent = cafe.post("/cafe/predict", {"offers": [["tea", "pie"]]}).json()["predictions"]
    found = shell(cafe, "predict", folder, "--offer", "tea;pie")["markets"]
    assert found.keys() == {"old", "new"}
    assert sent[0].pop("nearness") is None  # a model of a stream does not store its offers
    assert all(answer.pop("nearness")["nearest"] for rows in found.values() for answer in rows)
    assert form(found["old"]) == form(found["new"]) == form(sent)
    printed = shell(cafe, "show", folder, "--top", "3")["markets"]
    for path, names in (("segments?top=3", ("segments",)), ("substitution", ("items",))):
        one = cafe.get(f"/cafe/{path}").json()
        for name in names:
            mine, theirs = (one[0] if isinstance(one, list) else {} for one in (printed["old"][name], one[name]))
            assert mine.keys() == theirs.keys()
    halves = shell(cafe, "drift", "stores.jsonl", "stores.jsonl", "--by", "store", "--no-choice", "nothing")["markets"]
    drift = cafe.get("/cafe/drift").json()
    assert halves["old"].keys() == drift.keys() - {"market", "before", "after"}


def test_decisions_of_many_markets_have_the_form_of_one(cafe: Shop, stores: Path) -> None:
    question = {"margins": {"tea": 1, "pie": 3, "cake": 2}, "at_most": 1, "no_choice": "nothing"}
    sent = cafe.post("/cafe/decide", question).json()["decision"]
    words = ["decide", stores.name, "--margins", "items.csv", "--at-most", "1", "--no-intervals"]
    found = shell(cafe, *words)["markets"]
    assert found["old"].keys() == found["new"].keys() == sent.keys()
    lacking = shell(cafe, *words, "--must", "cake", code=1)["markets"]
    refused = cafe.post("/cafe/decide", {**question, "must": ["scone"]})
    assert refused.status_code == 422
    assert lacking["new"].keys() == refused.json().keys() == {"error"}
    assert lacking["old"]["offer"] == ["cake"]


def test_few_choices_are_provisional(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("new", [TEA] * 20 + [PIE] * 9)
        one.settle("new", served="sparse")
        one.learn()
        offers = {"offers": [["tea", "nothing"]]}
        assert one.post("/new/predict", offers).json()["provisional"] is True
        answers = [one.get(f"/new/{path}").json() for path in ("segments", "substitution", "certificate")]
        margins = {"margins": {"tea": 1, "pie": 3}, "no_choice": "nothing"}
        answers += [one.post(f"/new/{path}", margins).json() for path in ("decide", "next-offer")]
        assert [answer["model"]["provisional"] for answer in answers] == [True] * 5
        assert one.get("/new/drift").json()["verdict"].startswith("Not enough choices yet: ")
        sentence = "Predictions from fewer than 30 choices are provisional."
        assert sentence in one.http.request("GET", "/markets/new").text
        one.send("new", [TEA])
        one.learn()
        assert one.post("/new/predict", offers).json()["provisional"] is False
        wait_for(lambda: sentence not in one.http.request("GET", "/markets/new").text)
