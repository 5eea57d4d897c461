"""What holds for all commands alike: one JSON document, one sentence for bad input, and never a traceback."""

import json
import signal
from dataclasses import fields
from functools import cache
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments import study
from rankstream import Assortments, EntropyModel, RankingModel
from rankstream.cli import fit, main, options, plot
from rankstream.cli.app import COMMANDS, make_app
from rankstream.data.readers.groups import PERIODS
from rankstream.data.readers.reading import Format
from rankstream.estimation.methods import METHODS, WITH_PRICES
from rankstream.models.entropy.ranking_laws import plackett_luce

MODEL = RankingModel(
    ["tea", "pie", "nothing"], [("tea", "pie", "nothing"), ("nothing", "tea", "pie")], [0.75, 0.25], no_choice_code=2
)
LATER = RankingModel(
    MODEL.items, [("pie", "tea", "nothing"), ("nothing", "tea", "pie")], [0.75, 0.25], no_choice_code=2
)
OTHER = RankingModel(
    ["rum", *MODEL.items], [("rum", "nothing", "tea", "pie"), ("tea", "pie", "nothing", "rum")], [0.5, 0.5],
    no_choice_code=3,
)  # fmt: skip
ROWS = [
    f"2024-0{month}-02,{offer},{chosen},{count}"
    for month, counts in ((1, (70, 30, 80, 20)), (2, (30, 70, 79, 21)))
    for (offer, chosen), count in zip(
        [(f"{item};nothing", chosen) for item in ("tea", "pie") for chosen in (item, "nothing")], counts, strict=True
    )
]
DATA = "\n".join(["time,offered,chosen,count", *ROWS]) + "\n"
LINES = "".join(
    json.dumps({"offered": ["tea", "nothing"], "chosen": chosen}) + "\n" for chosen in ("tea", "tea", "nothing") * 20
)
STUDY = 'kind = "static"\nmethods = ["MD_ns"]\ntolerance = 0.05\n'
GOOD = {
    "fit": ["fit", "DATA", "-o", "OUT", "--outside-share", "0.2", "--no-choice", "gone"],
    "predict": ["predict", "MODEL", "--offer", "tea;nothing"],
    "show": ["show", "MODEL"],
    "plot": ["plot", "MODEL", "-o", "PICTURE"],
    "plot shares": ["plot", "DATA", "-o", "PICTURE", "--kind", "shares", "--offer", "nothing;tea"],
    "report": [
        "report",
        "MODEL",
        "--data",
        "DATA",
        "-o",
        "OUT",
        "--replicates",
        "2",
    ],
    "stream": ["stream", "LINES", "--out", "OUT", "--to-end"],
    "stream detect": ["stream", "LINES", "--out", "OUT", "--to-end", "--detect"],
    "drift": ["drift", "DATA", "DATA"],
    "drift at": ["drift", "DATA", "--at", "2024-02"],
    "drift models": ["drift", "MODEL", "LATER"],
    "compare": ["compare", "DATA", "--models", "mnl", "--folds", "2", "--outside-share", "0.3", "--no-choice", "gone"],
    "reproduce": ["reproduce", "STUDY", "--instances", "1", "--jobs", "1", "--out", "OUT", "--seed", "3"],
}
FILES = {
    "MODEL": "model.json",
    "LATER": "later.json",
    "DATA": "data.csv",
    "LINES": "lines.jsonl",
    "STUDY": "mine.toml",
    "OFFERS": "offers.txt",
    "OTHER": "other.json",
    "OUT": "out",
    "PICTURE": "picture.png",
    "ODD": "odd",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    MODEL.save(tmp_path / "model.json")
    LATER.save(tmp_path / "later.json")
    OTHER.save(tmp_path / "other.json")
    for name, text in (("DATA", DATA), ("LINES", LINES), ("STUDY", STUDY), ("OFFERS", "tea;nothing\n")):
        (tmp_path / FILES[name]).write_text(text)
    return tmp_path


def run(folder: Path, words: list[str]) -> int:
    """What the shell is told."""
    with pytest.raises(SystemExit) as ended:
        main([str(folder / FILES[word]) if word in FILES else word for word in words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("words", GOOD.values(), ids=GOOD)
def test_json_is_one_document_and_nothing_else(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = [] if "--seed" in words or words[0] == "drift" else ["--seed", "1"]
    assert run(folder, [*words, *seed, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list if words[0] == "predict" else dict)
    if words[0] == "reproduce":
        rows = (folder / "out" / "runs.csv").read_text().splitlines()
        assert len(rows) == 2
        assert rows[1].split(",")[rows[0].split(",").index("instance")] == "3"
        assert "from seed 3 on" in (folder / "out" / "report.md").read_text()


TEXTS = {
    "fit": (GOOD["fit"], ["Assumed: 20 % took 'gone'; the data"]),
    "fit once": (["fit", "DATA", "-o", "OUT", "--outside-share", "0.2"], ["Assumed: 20 % took 'no choice'; the data"]),
    "drift": (
        GOOD["drift at"],
        [
            "Tastes changed: tea -40.0 points.",
            "1 of 2 offers changed significantly (holm, 5 %",
            "  tea: -40.0 points in the one offer with it (p = ",
        ],
    ),
    "drift offers": (
        [*GOOD["drift at"], "--by-offer"],
        ["each:\n  nothing +40.0 points in nothing;tea: p = "],
    ),
    "drift new": (["drift", "DATA", "LINES"], ["No longer seen: 1 offer\nList the offers with --by-offer"]),
    "drift new offers": (["drift", "DATA", "LINES", "--by-offer"], ["No longer seen: 1 offer\n  nothing;pie"]),
    "drift models": (
        [*GOOD["drift models"], "--min-change", "0.5"],
        ["by their first two favourites, changes of 50 points or more: 1 appeared, 1 vanished, 0 grew", "tea > pie"],
    ),
    "drift item": (["drift", "MODEL", "OTHER"], ["Items only after: rum", "(nothing)"]),
}


@pytest.mark.parametrize(("words", "lines"), TEXTS.values(), ids=TEXTS)
def test_people_read_sentences(
    folder: Path, words: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, words) == 0
    text = capsys.readouterr().out
    for line in lines:
        assert line in text


def test_intervals_of_a_model_with_an_assumed_share(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assumed = ["--outside-share", "0.2", "--no-choice", "gone"]
    assert run(folder, ["fit", "DATA", "-o", "OUT", "--method", "nearest", *assumed]) == 0
    words = ["predict", "OUT", "--offer", "tea;gone", "--interval", "0.9", "--data", "DATA", "--json"]
    capsys.readouterr()
    assert run(folder, [*words, *assumed]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert found["intervals"]["gone"][0] < found["shares"]["gone"] < found["intervals"]["gone"][1]
    assert run(folder, words) == 0
    assert json.loads(capsys.readouterr().out)[0] == found  # the model remembers both
    assert run(folder, ["plot", "OUT", "-o", "PICTURE", "--kind", "fit", "--data", "DATA", *assumed]) == 0


def test_times_divide_at_their_beginning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"2024-05-16 {hour:02}:30,tea;pie,tea,{10**hour}" for hour in range(4)]
    (folder / "data.csv").write_text("\n".join(["time,offered,chosen,count", *rows]) + "\n")
    for at in ("2024-05-16 02:00", "2024-05-16T02"):
        assert run(folder, ["drift", "DATA", "--at", at, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["offers"][0]
        assert (found["before"], found["after"]) == (11, 1100)


BAD = {
    "fit": ["fit", "MODEL", "-o", "OUT"],
    "fit twice": ["fit", "DATA", "-o", "OUT", "--outside-share", "0.2", "--no-choice", "nothing"],
    "predict": ["predict", "DATA", "--offer", "tea"],
    "show": ["show", "LINES"],
    "plot": ["plot", "LINES", "-o", "PICTURE"],
    "plot model": ["plot", "MODEL", "-o", "PICTURE", "--kind", "shares"],
    "plot period": ["plot", "MODEL", "-o", "PICTURE", "--period", "day"],
    "plot unseen": ["plot", "DATA", "-o", "PICTURE", "--kind", "shares", "--offer", "tea;pie"],
    "plot timeless": ["plot", "LINES", "-o", "PICTURE", "--kind", "shares"],
    "report": ["report", "DATA", "--data", "DATA", "-o", "OUT"],
    "report itself": ["report", "MODEL", "--data", "DATA", "-o", "DATA"],
    "stream": ["stream", "OFFERS", "--out", "OUT", "--to-end"],
    "drift": ["drift", "MODEL", "DATA"],
    "drift alone": ["drift", "DATA"],
    "drift nothing": ["drift", "OUT", "OUT"],
    "drift at": ["drift", "DATA", "--at", "noon"],
    "drift no day": ["drift", "DATA", "--at", "2024-01-32"],
    "drift early": ["drift", "DATA", "--at", "2020"],
    "drift rejects": ["drift", "DATA", "DATA", "--on-error", "skip", "--rejects", "OUT"],
    "drift level": ["drift", "DATA", "DATA", "--level", "7"],
    "drift control": ["drift", "DATA", "DATA", "--control", "none"],
    "compare": ["compare", "STUDY"],
    "reproduce": ["reproduce", "DATA"],
}


@pytest.mark.parametrize("words", BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_and_code_2(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, [*words, "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == "" or words[0] == "stream"  # which tells what it saved before
    assert said.err.startswith("rankstream: ")
    assert len(said.err.splitlines()) == 1
    assert said.err.rstrip().endswith(".")


READERS = [
    ["fit", "ODD", "-o", "OUT", "--budget", "0", "--method", "primal-dual"],
    ["predict", "ODD", "--offer", "tea"],
    ["predict", "MODEL", "--offers", "ODD"],
    ["predict", "MODEL", "--offer", "tea;pie", "--interval", "0.9", "--data", "ODD"],
    ["show", "ODD"],
    ["plot", "ODD", "-o", "PICTURE", "--kind", "substitution"],
    ["plot", "MODEL", "-o", "PICTURE", "--kind", "fit", "--data", "ODD"],
    ["plot", "ODD", "-o", "PICTURE", "--kind", "shares"],
    ["report", "ODD", "--data", "DATA", "-o", "OUT", "--no-intervals"],
    ["report", "MODEL", "--data", "ODD", "-o", "OUT", "--no-intervals"],
    ["stream", "ODD", "--out", "OUT", "--to-end"],
    ["stream", "ODD", "--out", "OUT", "--to-end", "--detect", "--on-error", "skip"],
    ["drift", "ODD", "DATA"],
    ["drift", "MODEL", "ODD"],
    ["drift", "ODD", "--at", "2024-02", "--on-error", "skip"],
    ["compare", "ODD", "--models", "mnl", "--folds", "2", "--on-error", "skip"],
    ["reproduce", "ODD", "--instances", "1", "--jobs", "1", "--out", "OUT"],
]
WHOLE = [DATA, LINES, STUDY, "ranking,count\na>b=c,3\nb,2\n", "obs_id,alt_id,chosen\n1,a,1\n1,b,0\n", "[]", "{}"]
WHOLE += ["offered,chosen\na,a\n", '{"offered": ["\\ud800", 7], "chosen": 7}\n' * 60]
WHOLE += ["4: 1,2,{3,4}\n", '{"format": "rankstream-model", "version": 1}', '{"format": "rankstream-entropy-model"}']
PIECES = [";", ",", "\n", "{", "}", '"', "0", "-1", "nan", "1e999", "\x00", "é", "tea", "\\ud800"]


@cache
def saved_models() -> list[bytes]:
    """The files of both kinds of models."""
    offers = Assortments([("tea", "pie")], ["tea", "pie", "cake"])
    dense = EntropyModel(plackett_luce(offers.items, [1.0, 1.0, 2.0]), offers, np.array([0.0, 1.0]))
    models: list[RankingModel | EntropyModel] = [MODEL, dense]
    with TemporaryDirectory() as folder:
        for number, model in enumerate(models):
            model.save(Path(folder) / str(number))
        return [(Path(folder) / str(number)).read_bytes() for number in range(2)]


@st.composite
def odd_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """Good files with something wrong in them, and files of nothing known; with all sorts of endings."""
    good = [text.encode() for text in WHOLE] + 2 * saved_models()
    content = draw(st.sampled_from(good) | st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
    place = draw(st.integers(0, len(content)))
    piece = draw(st.sampled_from([piece.encode() for piece in PIECES]) | st.binary(max_size=3) | st.just(b""))
    content = content[:place] + piece + content[place + draw(st.integers(0, 30)) :]
    return draw(
        st.sampled_from([".csv", ".json", ".jsonl", ".toml", ".soc", ".toi", ".parquet", ".csv.gz", ""])
    ), content


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(odd=odd_files())
@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_garbage_gives_no_traceback(folder: Path, words: list[str], odd: tuple[str, bytes]) -> None:
    ending, content = odd
    FILES["ODD"] = f"odd{ending}"
    (folder / FILES["ODD"]).write_bytes(content)
    out = folder / "out"
    for path in (*out.glob("*"), *out.glob(".*")) if out.is_dir() else [out]:
        path.unlink(missing_ok=True)
    assert run(folder, words) in (0, 2)


def test_an_interrupt_ends_with_code_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(options.ReadingOptions, "read", press)
    monkeypatch.setattr(study, "reproduce", press)
    assert run(folder, GOOD["fit"]) == 1
    assert capsys.readouterr().err == "rankstream: interrupted.\n"
    assert run(folder, GOOD["reproduce"]) == 1
    assert "run the command again to continue" in capsys.readouterr().err


def test_want_of_memory_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def demand(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(options.ReadingOptions, "read", demand)
    assert run(folder, GOOD["fit"]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_what_the_shell_completes_is_what_there_is() -> None:
    assert ("auto", *METHODS, *WITH_PRICES) == fit.METHODS
    assert set(get_args(Format)) == set(options.FORMATS)
    assert tuple(PERIODS) == plot.PERIODS


def test_what_reads_choices_has_all_options_for_it() -> None:
    everything = {field.name for field in fields(options.ReadingOptions) if not field.name.startswith("_")}
    taken = {
        name: set(signature(getattr(import_module(f"rankstream.cli.{name}"), name)).parameters) for name in COMMANDS
    }
    found = {name: everything & parameters for name, parameters in taken.items()}
    assert {name for name in found if "rejects" in found[name]} == {
        *("open", "fit", "predict", "show", "plot", "decide", "report", "drift", "compare"),
    }
    assert all(found[name] == everything for name in ("fit", "predict", "show", "decide", "report"))
    known = everything - {"between"}  # offers that are known in part need a fit
    assert all(found[name] == known for name in ("open", "plot", "compare"))
    assert found["drift"] == known - {"outside_share"}
    assert all("reading" not in parameters for parameters in taken.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_seed(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(tmp_path, [name, *(["run"] if name == "serve" else []), "--help"]) == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert ("--seed" in text) == (name != "drift")  # which draws nothing at random


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_shows_an_example(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(tmp_path, [name, "--help"]) == 0
    assert f"Example: rankstream {name}" in capsys.readouterr().out


def test_every_option_has_help_and_every_help_an_option() -> None:
    def commands(group: Any) -> list[Any]:
        own = getattr(group, "commands", {}).values()
        return [one for command in own for one in commands(command)] or [group]

    found = commands(typer.main.get_command(make_app()))
    assert len(found) > len(COMMANDS)
    for command in found:
        names = {parameter.name for parameter in command.params}
        listed = (getdoc(command.callback) or "").partition(options.OPTIONS_HEADING)[2].splitlines()
        assert [parameter.name for parameter in command.params if not parameter.help] == []
        assert "Options:" not in command.help
        own = {line.partition(":")[0] for line in listed if not line.startswith(" ")}
        assert own - names <= {field.name for field in fields(options.ReadingOptions)}, command.name
