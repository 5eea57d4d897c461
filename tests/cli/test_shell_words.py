"""The words of the shell: choices in the help, names nearly right, files that are something else, odd characters."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rankstream
from rankstream import RankingModel, read_counts
from rankstream._core.terminal import visible
from rankstream.cli.app import COMMANDS
from rankstream.cli.plot import check_kind
from shell import run

pytestmark = pytest.mark.quick

MODEL = RankingModel(["Oat Milk", "tea", "no"], [("Oat Milk", "tea", "no"), ("no", "tea", "Oat Milk")], [0.75, 0.25])
CHOICES = "offered,chosen,count\nOat Milk;no,Oat Milk,60\nOat Milk;no,no,40\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    MODEL.save(tmp_path / "model.json")
    (tmp_path / "choices.csv").write_text(CHOICES)
    (tmp_path / "items.csv").write_text("item,margin\nOat Milk,1\ntee,2\n")
    return tmp_path


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal so wide that no word of a help is broken, whatever width typer saw when it was imported."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("fit", {"--method": "auto|max-entropy|nearest", "--on-error": "stop|skip", "--format": "transactions|long"}),
        ("plot", {"--kind": "segments|substitution|fit|shares", "--period": "hour|day"}),
        ("drift", {"--control": "holm|fdr"}),
        ("compare", {"--holdout": "assortments|choices|person|time"}),
        ("decide", {"--strategy": "thompson|greedy|ucb"}),
    ],
)
def test_choices_are_shown_as_choices(folder: Path, command: str, options: dict[str, str]) -> None:
    text = run(command, "--help", cwd=folder).stdout
    for option, choices in options.items():
        assert re.search(rf"{option}\s+\[{re.escape(choices)}", text), text


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_flags_have_no_type_and_seeds_say_what_for(folder: Path, command: str) -> None:
    words = ["serve", "run"] if command == "serve" else [command] if command else []
    text = run(*words, "--help", cwd=folder).stdout
    assert "<bool>" not in text
    if command not in ("", "stream", "drift"):
        assert re.search(r"(?i)--seed .*random seed ", text), text
        assert not re.search(r"\b(so many|tells?|told|holds?)\b", text.replace("--holdout", "")), text


@pytest.mark.parametrize(
    ("words", "first", "second"), [(["serve", "token", "create"], "--market", "--may"), (["plot"], "--out", "--kind")]
)
def test_required_options_come_first(folder: Path, words: list[str], first: str, second: str) -> None:
    text = run(*words, "--help", cwd=folder).stdout.partition("Options")[2]
    assert 0 <= text.find(f"{first} ") < text.find(f"{second} ")
    assert "list[" not in text


def test_names_nearly_right_are_asked_about(folder: Path) -> None:
    for words in (
        ["predict", "model.json", "--offer", "oat milc;no"],
        ["plot", "model.json", "-o", "x.png", "--kind", "substitution", "--offer", "OatMilk;no"],
        ["decide", "model.json", "--margins", "items.csv", "--must", "oatmilk"],
    ):
        done = run(*words, cwd=folder)
        assert done.returncode == 2
        assert "(did you mean 'Oat Milk'?)" in done.stderr or "(did you mean 'tea'?)" in done.stderr
    assert "did you mean 'tea'" in run("decide", "model.json", "--margins", "items.csv", cwd=folder).stderr
    assert "did you mean 'nearest'" in run("fit", "choices.csv", "--method", "neares", cwd=folder).stderr
    assert "did you mean" not in run("predict", "model.json", "--offer", "xyz", cwd=folder).stderr


def test_a_long_list_of_names_is_cut(folder: Path) -> None:
    many = [f"item {number}" for number in range(50)]
    RankingModel(many, [many], [1.0]).save(folder / "model.json")
    said = run("predict", "model.json", "--offer", "rum", cwd=folder).stderr
    assert "'item 19' and 30 more." in said
    assert "item 20'" not in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["drift", "model.json", "nofile.json"], "There is no file nofile.json to compare model.json with"),
        (["drift", "nofile.json", "model.json"], "There is no file nofile.json to compare model.json with"),
        (["drift", "model.json", "--at", "2024"], "model.json is a model, which has no times"),
        (["drift", "choices.csv", "--at", ""], "--at is ''"),
        (
            ["drift", "choices.csv", "--at", "2024"],
            "choices.csv has no column 'time', which periods need: set --columns time=YOUR_COLUMN.",
        ),
        (
            ["fit", "choices.csv", "--half-life", "7d"],
            "choices.csv has no column 'time', which --half-life needs: map it with --columns",
        ),
        (["fit", "choices.csv", "--tolerance", "abc"], "--tolerance must be a valid number."),
        (
            ["predict", "model.json", "--offer", "tea,Oat Milk"],
            "Separate the items of the offer 'tea,Oat Milk' by ';': 'tea;Oat Milk'.",
        ),
        (["predict", "model.json", "--offer", "tea|no"], "Separate the items of the offer 'tea|no' by ';': 'tea;no'."),
        (["serve", "token", "create", "s", "--market", "a", "--may", "go"], "--may names 'go': choose among write"),
        (["drift", "choices.csv", "--at", "\udcff"], "--at is '\\udcff'"),
        (["predict", "choices.csv", "--offer", "tea"], "choices.csv is not a rankstream model: if it is a file of"),
        (["show", "choices.csv"], "choices.csv is not a rankstream model"),
        (
            ["plot", "model.json", "-o", "x.webp"],
            "x.webp is not the name of an image: use one that ends in .png, .svg, .pdf or",
        ),
        (
            ["plot", "choices.csv", "--kind", "shares", "-o", "x.png", "--offer", "no"],
            "choices.csv has no column 'time'",
        ),
    ],
)
def test_the_right_thing_is_blamed(folder: Path, words: list[str], sentence: str) -> None:
    done = run(*words, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"rankstream: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_lists_all_endings_of_pictures(folder: Path) -> None:
    assert "Output file: .png, .svg, .pdf or .jpg." in run("plot", "--help", cwd=folder).stdout
    assert run("plot", "model.json", "-o", "x.JPG", cwd=folder).returncode == 0
    assert (folder / "x.JPG").read_bytes().startswith(b"\xff\xd8")


EVIL = "tea\x1b[31m\r\x9b2J\u202e"


def test_control_characters_do_not_reach_the_terminal(folder: Path) -> None:
    items = [EVIL, "a\nb", "no"]
    RankingModel(items, [items, ["no", "a\nb", EVIL]], [0.75, 0.25]).note(
        method=EVIL, data={"file": EVIL}, reading={"columns": EVIL}, changed=EVIL
    ).save(folder / "model.json")
    RankingModel(items, [["a\nb", "no", EVIL]], [1.0]).save(folder / "later.json")
    red = EVIL[:8]
    rows = [f"{time},no;{red},{chosen},90" for time, chosen in (("2024-01-01", "no"), ("2024-02-01", red))]
    (folder / "choices.csv").write_text("\n".join(["time,offered,chosen,count", *rows]) + "\n")
    for words in (
        ["show", "model.json"],
        ["predict", "model.json", "--offer", f"no;{EVIL}"],
        ["predict", "model.json", "--offer", f"no;{EVIL}x"],
        ["drift", "model.json", "later.json"],
        ["drift", "choices.csv", "--at", "2024-02", "--by-offer"],
        ["plot", "model.json", "-o", f"{EVIL}.odd"],
        ["show", f"{EVIL}.json"],
        ["fit", "choices.csv", "--method", EVIL],
    ):
        done = run(*words, cwd=folder)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout + done.stderr), words
        assert "\\x1b" in done.stdout + done.stderr, words
    assert visible("a\tb\nc", keep="") == "a\\tb\\nc"
    assert "a\\nb" in run("show", "model.json", cwd=folder).stdout


def test_file_names_that_are_not_utf_8(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    (folder / name).write_text(CHOICES)
    for words in (["fit", name, "-o", f"{name}.json", "--method", "mnl"], ["show", f"{name}.json"]):
        done = run(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "caf\\udce9.csv" in done.stdout
        done.stdout.encode()
    assert "caf\\udce9" in run("fit", f"no {name}", cwd=folder).stderr


STARTING = """
import signal, sys
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
from rankstream.cli import main
sys.meta_path.insert(0, Slow())
main({words!r})
"""


@pytest.mark.parametrize("module", ["typer", "rankstream.cli.show"])
def test_an_interrupt_while_loading_is_one_sentence(folder: Path, module: str) -> None:
    code = STARTING.format(module=module, words=["show", "model.json"])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "rankstream: interrupted.\n")


def test_an_interrupt_in_a_callback_is_not_ignored(folder: Path) -> None:
    code = "\n".join(
        [
            "import sys, types",
            "class Last:",
            "    def __del__(self): raise KeyboardInterrupt",
            "def run(words):",
            "    Last()",
            "    print('went on')",
            "app = sys.modules['rankstream.cli.app'] = types.ModuleType('rankstream.cli.app')",
            "app.main = run",
            "from rankstream.cli import main; main([])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "rankstream: interrupted.\n")


@pytest.mark.parametrize(
    ("content", "options", "library", "shell"),
    [
        (
            "a,b\n1,x\n",
            {},
            "map them: columns='offered=YOUR_COLUMN,chosen=YOUR_COLUMN'.",
            "map them: --columns offered=YOUR_COLUMN,chosen=YOUR_COLUMN.",
        ),
        ("obs_id,item,chosen\n1,tea,0\n1,pie,0\n", {}, "add no_choice='nothing'.", "add --no-choice nothing."),
        (
            "time,offered,chosen\n02.13.26,a;b,a\n",
            {"since": "2024-01-01"},
            "correct it, or set dates='dmy'.",
            "correct it, or set --dates dmy.",
        ),
    ],
)
def test_the_library_names_arguments_and_the_shell_options(
    tmp_path: Path, content: str, options: dict[str, str], library: str, shell: str
) -> None:
    (tmp_path / "choices.csv").write_text(content)
    with pytest.raises(ValueError, match=re.escape(library)):
        read_counts(tmp_path / "choices.csv", **options)  # type: ignore[arg-type]
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = run("fit", "choices.csv", *words, cwd=tmp_path)
    assert (done.returncode, shell in done.stderr) == (2, True), done.stderr


ABOUT_COMMANDS = {"service/http/guard.py", "service/run.py"}  # they tell whoever runs the server what to type


def test_no_sentence_of_the_library_names_an_option_of_the_shell() -> None:
    source = Path(rankstream.__file__).parent
    for path in source.rglob("*.py"):
        place = path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8")
        if place.startswith("cli/") or place in ABOUT_COMMANDS or not re.search("--[a-z]", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Raise):
                texts = [
                    one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                assert not [text for text in texts if re.search(r"(^|[ '(])--[a-z]", text)], (
                    f"{place}, line {node.lineno}"
                )


KINDS = ("fit", "shares", "segments", "substitution", "demand", "overview")


@pytest.mark.parametrize(
    ("option", "kinds"),
    [("offer", {"substitution", "shares", "demand"}), ("item", {"demand"}), ("period", {"shares"})],
)
def test_options_of_a_chart_work_with_some_kinds_alone(option: str, kinds: set[str]) -> None:
    for kind in KINDS:
        given: dict[str, Any] = {"offer": None, "item": None, "period": None} | {option: "tea"}
        data = Path("choices.csv") if kind == "fit" else None
        if kind in kinds:
            check_kind(kind, data, **given)
        else:
            with pytest.raises(ValueError, match=f"^--{option} does not work with --kind {kind}: leave it out.$"):
                check_kind(kind, data, **given)


def test_choices_of_a_chart_are_given_once() -> None:
    nothing: dict[str, Any] = {"offer": None, "item": None, "period": None}
    for kind, data in (("fit", None), ("shares", Path("x"))):
        with pytest.raises(ValueError, match=r"^--kind "):
            check_kind(kind, data, **nothing)
    for kind, data in (("fit", Path("x")), ("shares", None), ("segments", Path("x"))):
        check_kind(kind, data, **nothing)
