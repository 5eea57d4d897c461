import json
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner, Result

import price_decide_cases as prices
from rankstream import Assortments, Bootstrap, ChoiceCounts, RankingModel, estimate, fit_within
from rankstream.cli import show
from rankstream.cli.app import make_app
from rankstream.cli.model_answers import read_offers
from rankstream.cli.show import _gain as gain_words
from rankstream.data import simulate
from rankstream.estimation.methods import METHODS
from rankstream.models.entropy import fit as entropy
from rankstream.models.files import load_model, method_of
from rankstream.models.parametric.mnl import fit_mnl

MODEL = RankingModel(["tea", "pie", 7], [("tea", "pie", 7), (7, "tea", "pie")], [0.75, 0.25], no_choice_code=2)
MODEL.note(reading={"no_choice": "7"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    MODEL.save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_what_is_shown_to_begin_at_0_is_in_parentheses() -> None:
    assert gain_words("tea", 0.19, {"tea": [0.004, 0.38]}) == "(tea 19 % [0, 38])"
    assert gain_words("tea", 0.19, {"tea": [0.006, 0.38]}) == "tea 19 % [1, 38]"


def test_show_explains_parentheses_only_where_there_are_some(tmp_path: Path) -> None:
    items = ("tea (green)", "pie", "nothing")
    offers = Assortments([items, *combinations(items, 2)])
    model = fit_within(ChoiceCounts(offers, [4000, 3000, 3000, 6000, 4000, 6000, 4000, 5000, 5000]), errors=True).model
    with_leavers = RankingModel(["tea", "nothing"], [("tea", "nothing")], [1.0], no_choice_code=1)
    without = RankingModel(["tea (green)", "pie"], [("tea (green)", "pie"), ("pie", "tea (green)")], [0.5, 0.5])
    texts = []
    for place, each in enumerate((model, with_leavers, without)):
        each.save(tmp_path / f"{place}.json")
        texts.append(call("show", tmp_path / f"{place}.json").output)
    assert " refits;" in texts[0]
    assert ["A gain in parentheses" in text for text in texts] == [False, False, False]
    line = "(nothing): these customers buy nothing if the items before it are missing."
    assert [line in text for text in texts] == [False, True, False]


def call(*words: object) -> Result:
    return CliRunner().invoke(make_app(), [str(word) for word in words])


def test_predict_prints_shares(path: Path, tmp_path: Path) -> None:
    assert " 75.0 %  tea" in call("predict", path, "--offer", "tea;7").output
    (tmp_path / "offers.txt").write_text("offered\n\ntea; pie\n7;pie\n")
    found = json.loads(call("predict", path, "--offers", tmp_path / "offers.txt", "--json").output)
    assert found[0] == {
        "offer": ["tea", "pie"],
        "shares": {"tea": 0.75, "pie": 0.0, "7": 0.25},
        "added": ["7"],
        "nearness": None,
        "warnings": [],
    }
    assert found[1]["shares"] == {"7": 0.25, "pie": 0.75}
    assert found[1]["added"] == []


def test_predict_warns_of_offers_far_from_the_data(tmp_path: Path) -> None:
    """The sentence is that of ``decide``; offers near the data, and models without their offers, have none."""
    offers = Assortments([("tea", "pie", "cake", "bun", "no"), ("tea", "pie", "cake", "no")])
    counts = ChoiceCounts(offers, [5, 4, 3, 2, 6, 5, 4, 3, 8])
    model = estimate(counts, method="mnl").model
    model.save(tmp_path / "model.json")
    far = "Warning: this is an extrapolation. Try it in a test, or move towards it in small steps."
    near = model.nearness(["tea"])
    assert near is not None
    assert (near.differs, near.shown, near.nearest) == (3, 0.0, ("tea", "pie", "cake", "no"))  # none is "no choice" yet
    assert near.sentence == f"{near.words} {far}"
    for offer, words in ("tea", near.sentence), ("tea;pie;cake;bun;no", ""), ("tea;pie;cake;bun", ""):
        text = call("predict", tmp_path / "model.json", "--offer", offer).output
        assert (far in text) == bool(words)
        assert words in text
    found = json.loads(call("predict", tmp_path / "model.json", "--offer", "tea", "--json").output)
    assert found[0]["nearness"] == near.to_json()
    assert found[0]["nearness"]["is_extrapolation"]
    seen = model.about["seen"]
    changes: tuple[Any, ...] = ({"offers": [[99]]}, {"tallies": [["x"]] * 2}, {"offers": []})
    for wrong in (3, {}, {"offers": 1}, *(seen | change for change in changes)):
        assert load_model(tmp_path / "model.json").note(seen=wrong).nearness(["tea"]) is None


def test_a_price_between_two_levels_is_a_difference() -> None:
    model = prices.make_model("rankings", (2, 1), True, False, 3)
    low, high = model.price_levels.levels["tea"]
    known = [[model.items.index(label) for label in (*model.price_levels.offer({"tea": low}), "no")]]
    model.note(seen={"offers": known, "tallies": [[3, 1]]})
    found = [model.nearness({"tea": price, "no": None}) for price in (low, (low + high) / 2, high)]
    assert [(near.shown, near.differs, near.size) for near in found] == [(4, 0, 1), (0, 1, 1), (0, 1, 1)]


def test_predict_adds_the_no_choice_item_and_says_so(path: Path) -> None:
    text = call("predict", path, "--offer", "tea").output
    assert " 25.0 %  7\n" in text
    assert "('7' was added: it is in every offer of the data. --forced leaves it out.)" in text
    assert "added" not in call("predict", path, "--offer", "tea;7").output
    forced = call("predict", path, "--offer", "tea", "--forced").output
    assert "100.0 %  tea" in forced
    assert "added" not in forced


def test_items_with_semicolons_are_told_in_a_json_list(tmp_path: Path) -> None:
    RankingModel(["a;x", "b", 7], [("a;x", "b", 7)], [1.0]).save(tmp_path / "model.json")
    (tmp_path / "offers.txt").write_text('["a;x", 7]\n"b;7"\n')
    found = call("predict", tmp_path / "model.json", "--offers", tmp_path / "offers.txt", "--json").output
    assert [one["shares"] for one in json.loads(found)] == [{"a;x": 1.0, "7": 0.0}, {"b": 1.0, "7": 0.0}]
    assert "is not an item of the model" in str(
        call("predict", tmp_path / "model.json", "--offer", '["a;x", 8').exception
    )


def test_intervals_skip_what_the_fit_skipped(tmp_path: Path) -> None:
    data, model = tmp_path / "choices.csv", tmp_path / "model.json"
    data.write_text("offered,chosen,count\na;b,a,60\na;b,b,40\na;b,z,1\n")
    RankingModel(["a", "b"], [("a", "b"), ("b", "a")], [0.6, 0.4]).save(model)
    words = ["predict", model, "--offer", "a;b", "--interval", 0.9, "--data", data]
    assert "not in its offer" in str(call(*words).exception)
    found = call(*words, "--on-error", "skip", "--rejects", tmp_path / "rejects.csv")
    assert "1 record was skipped" in found.stderr
    assert " 60.0 % [" in found.stdout
    assert (tmp_path / "rejects.csv").exists()


def test_show_tells_segments_and_gains(path: Path) -> None:
    text = call("show", path).output
    assert " 75.0 %  tea > pie" in text
    assert " 25.0 %  (7)" in text  # in every offer, and not called nothing
    found = json.loads(call("show", path, "--json").output)
    assert found["no_choice"] == "7"
    assert found["items"][0]["gains"] == {"pie": 1.0, "7": 0.0}


def test_a_model_that_does_not_say_its_version_is_shown_without_one(path: Path) -> None:
    content = json.loads(path.read_text())
    for about in ({**content.get("about", {}), "rankstream": None}, {}):
        path.write_text(json.dumps(content | {"about": about}))
        shown = call("show", path)
        assert shown.exit_code == 0
        assert "None" not in shown.output


def test_show_works_for_dense_models(tmp_path: Path) -> None:
    market = simulate.market(0, n_items=5, n_offers=8, n_test=4)
    model = entropy.fit_max_entropy(next(market.stream(first=3000)), "default").model
    model.save(tmp_path / "dense.json")
    assert load_model(tmp_path / "dense.json").items == model.items
    assert "by maximum entropy" in call("show", tmp_path / "dense.json").output


class QuickBootstrap(Bootstrap):
    """Two replicates instead of a hundred; remembers the methods it was asked for."""

    asked: ClassVar[list[Any]] = []

    def __init__(self, counts: ChoiceCounts, method: Any, replicates: int, seed: int, **options: Any) -> None:
        self.asked.append(method)
        assert replicates == 100
        super().__init__(counts, method, 2, seed, **options)


WORDS = {
    "mnl": "a multinomial logit",
    "latent-class": "a mixture of logits",
    "markov-chain": "a Markov chain",
    "max-entropy": "all rankings, by maximum entropy",
}


@pytest.mark.parametrize("method", METHODS)
def test_models_of_every_method_are_shown_drawn_and_asked(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model = tmp_path / "choices.csv", tmp_path / "model.json"
    rows = ["a;b;no,a,50", "a;b;no,b,30", "a;b;no,no,20", "a;no,a,70", "a;no,no,30", "b;c;no,b,30", "b;c;no,c,30"]
    data.write_text("\n".join(["offered,chosen,count", *rows]) + "\n")
    told = json.loads(call("fit", data, "-o", model, "--method", method, "--json").stdout)
    assert (told["method"], told["kind"]) == (method, method if method in WORDS else "rankings")
    assert WORDS.get(method, " rankings") in call("fit", data, "-o", model, "--method", method).stdout
    assert load_model(model).about["method"] == method
    shown = json.loads(call("show", model, "--json").stdout)
    assert (shown["kind"], shown["no_choice"]) == (told["kind"], "no")
    assert (shown["rankings"] is None) == (method in WORDS)
    assert 0.5 < sum(segment["share"] for segment in shown["segments"]) <= 1.0 + 1e-9
    assert f"A model of 3 items: {WORDS.get(method, shown['rankings'])}" in call("show", model).stdout
    for words in (["segments"], ["substitution"], ["fit", "--data", data]):
        assert call("plot", model, "-o", tmp_path / "picture.png", "--kind", *words).exit_code == 0
    assert call("drift", model, model).exit_code == 0
    monkeypatch.setattr("rankstream.estimation.intervals.Bootstrap", QuickBootstrap)
    QuickBootstrap.asked.clear()
    asked = call("predict", model, "--offer", "a;b", "--interval", 0.9, "--data", data, "--json")
    low, high = json.loads(asked.stdout)[0]["intervals"]["a"]
    assert low <= json.loads(asked.stdout)[0]["shares"]["a"] <= high
    assert QuickBootstrap.asked == [method]


def test_intervals_of_a_model_that_does_not_say_its_method(path: Path) -> None:
    loaded = load_model(path)
    assert method_of(loaded) == "nearest"
    assert method_of(loaded.note(method="mle")) == "mle"
    assert method_of(loaded.note(method=["mle"])) == "nearest"
    counts = ChoiceCounts(Assortments([("a", "b")]), [1, 2])
    assert method_of(fit_mnl(counts).note(method="mle")) == "mnl"  # which no logit is


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "MODEL"], "Give the offers to predict with --offer"),
        (["predict", "MODEL", "--offer", "tea;soup"], "'soup', which is not an item of the model"),
        (["predict", "MODEL", "--offer", "tea;tea"], "more than once"),
        (["predict", "MODEL", "--offer", "[" * 1000], "which is not an item of the model"),
        (["predict", "nowhere.json", "--offer", "tea"], "no model file nowhere.json"),
        (["predict", "MODEL", "--offers", "nowhere.txt"], "no file nowhere.txt"),
        (["show", "HALF"], "not a complete model file"),
        (["show", "LIST"], "not a rankstream model"),
    ],
)
def test_bad_input_is_one_sentence(path: Path, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "half.json").write_text(path.read_text()[:40])
    (tmp_path / "list.json").write_text("[]")
    files = {"MODEL": path, "HALF": tmp_path / "half.json", "LIST": tmp_path / "list.json"}
    done = call(*(files.get(word, word) for word in words))
    assert isinstance(done.exception, ValueError)  # main() turns it into a line and exit code 2
    assert message in str(done.exception)


def test_files_of_offers(tmp_path: Path) -> None:
    file = tmp_path / "offers.txt"
    file.write_text("\n")
    with pytest.raises(ValueError, match="has no offers"):
        read_offers(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        read_offers(file)


@pytest.mark.parametrize("level", ["0", "1", "-0.5", "1.5", "nan"])
def test_confidence_levels_are_between_0_and_1(path: Path, level: str, tmp_path: Path) -> None:
    """Refused before the choices are read, which may take long."""
    found = call("predict", path, "--offer", "tea", "--interval", level, "--data", tmp_path / "absent.csv")
    assert "--interval" in str(found.exception)


@pytest.mark.parametrize(
    ("by", "no_choice", "ranking", "words"),
    [
        ("whole rankings", "no", ["a", "b"], "a > b > (no)"), ("first two choices", "no", ["a", "b"], "a > b"),
        ("first two choices", "no", ["a"], "a > (no)"), ("first two choices", "no", [], "(no)"),
        ("first two choices", None, ["a"], "a"), ("whole rankings", None, ["a", "b"], "a > b"),
        ("whole rankings", None, list("abc"), "a > b > c"),
        ("whole rankings", None, list("abcd"), "a > b > c > 1 more"),
        ("whole rankings", "no", list("abcd"), "a > b > c > 2 more"),
    ],
)  # fmt: skip
def test_types_end_with_the_no_choice_item(
    monkeypatch: pytest.MonkeyPatch, by: str, no_choice: str | None, ranking: list[str], words: str
) -> None:
    monkeypatch.setattr(show, "MOST_PLACES", 3)
    assert show._ranking({"ranking": ranking}, {"segments_by": by, "no_choice": no_choice}) == words
