import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rankstream import ChoiceCounts, RankingModel
from rankstream.cli.app import make_app
from rankstream.data import simulate
from rankstream.models.entropy import fit as entropy

MODEL = RankingModel(
    ["tea", "pie", "nothing"], [("tea", "pie", "nothing"), ("nothing", "tea", "pie")], [0.75, 0.25], no_choice_code=2
)
DATA = "offered,chosen,count\n" + "\n".join(
    f"{offer},{chosen},{count}"
    for offer, chosen, count in (
        ("tea;nothing", "tea", 70),
        ("tea;nothing", "nothing", 30),
        ("pie;nothing", "pie", 80),
        ("pie;nothing", "nothing", 20),
    )
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    MODEL.save(tmp_path / "model.json")
    (tmp_path / "data.csv").write_text(DATA + "\n")
    (tmp_path / "folder.png").mkdir()
    return tmp_path


def call(folder: Path, *words: str) -> Result:
    names = {"MODEL": "model.json", "DATA": "data.csv", "OUT": "picture.png", "SVG": "picture.svg"}
    return CliRunner().invoke(make_app(), [str(folder / names[word]) if word in names else word for word in words])


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--kind", "segments", "--top", "1"],
        ["--kind", "substitution"],
        ["--kind", "substitution", "--offer", "tea; nothing"],
        ["--kind", "fit", "--data", "DATA"],
    ],
)
def test_pictures_are_saved_whole(folder: Path, more: list[str]) -> None:
    before = set(folder.iterdir())
    done = call(folder, "plot", "MODEL", "-o", "OUT", *more)
    assert done.exit_code == 0, done.exception
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert set(folder.iterdir()) - before == {folder / "picture.png"}
    assert "Saved" in done.output


def test_the_ending_is_the_format(folder: Path) -> None:
    assert call(folder, "plot", "MODEL", "-o", "SVG").exit_code == 0
    assert "<svg" in (folder / "picture.svg").read_text()


def test_dense_models_have_pictures_and_intervals_too(folder: Path) -> None:
    market = simulate.market(0, n_items=4, n_offers=5, n_test=2)
    counts = next(market.stream(first=500))
    entropy.fit_max_entropy(counts, "default").model.save(folder / "model.json")
    write(counts, folder / "data.csv")
    for kind in (["segments"], ["substitution"], ["fit", "--data", "DATA"]):
        assert call(folder, "plot", "MODEL", "-o", "OUT", "--kind", *kind).exit_code == 0
    words = ["--offer", "item 1;item 2;nothing", "--data", "DATA", "--interval", "0.9", "--json"]
    found = json.loads(call(folder, "predict", "MODEL", *words).output)[0]
    for item, (low, high) in found["intervals"].items():
        assert low < found["shares"][item] < high


def write(counts: ChoiceCounts, path: Path) -> None:
    offers = counts.assortments
    rows = [
        f"{';'.join(map(str, offers.offers[owner]))},{offers.items[code]},{tally:.0f}"
        for owner, code, tally in zip(offers.owner, offers.members, counts.tallies, strict=True)
    ]
    path.write_text("offered,chosen,count\n" + "\n".join(rows) + "\n")


def test_predict_prints_intervals(folder: Path) -> None:
    words = ["predict", "MODEL", "--offer", "tea;nothing", "--data", "DATA", "--interval", "0.95"]
    done = call(folder, *words)
    assert done.exit_code == 0, done.exception
    assert " 75.0 % [" in done.output
    assert call(folder, *words).output == done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plot", "MODEL", "-o", "OUT", "--kind", "pie"], "--kind is 'pie': choose one of"),
        (["plot", "MODEL", "-o", "OUT", "--kind", "fit"], "needs the choices"),
        (["plot", "DATA", "-o", "OUT", "--kind", "shares", "--data", "DATA"], "leave out --data"),
        (["plot", "MODEL", "-o", "OUT", "--offer", "tea;pie"], "--offer does not work with --kind segments"),
        (["plot", "MODEL", "-o", "OUT", "--kind", "substitution", "--offer", "tea"], "nothing to switch to"),
        (["plot", "MODEL", "-o", "OUT", "--kind", "substitution", "--offer", "tea;soup"], "'soup'"),
        (["plot", "MODEL", "-o", "nowhere/x.png"], "The folder nowhere does not exist"),
        (["plot", "MODEL", "-o", "x.txt"], "is not the name of an image"),
        (["plot", "nowhere.json", "-o", "OUT"], "no model file nowhere.json"),
        (["plot", "MODEL", "-o", "OUT", "--kind", "fit", "--data", "nowhere.csv"], "nowhere.csv"),
        (["predict", "MODEL", "--offer", "tea;pie", "--interval", "0.9"], "add --data FILE"),
        (["predict", "MODEL", "--offer", "tea;pie", "--data", "DATA"], "--data is for intervals: add --interval"),
        (["predict", "MODEL", "--offer", "tea;pie", "--data", "DATA", "--interval", "95"], "--interval is 95"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, words: list[str], message: str) -> None:
    done = call(folder, *words)
    assert isinstance(done.exception, ValueError)  # main() turns it into a line and exit code 2
    assert message in str(done.exception)
    assert not (folder / "picture.png").exists()


def test_a_folder_is_no_picture(folder: Path) -> None:
    done = call(folder, "plot", "MODEL", "-o", str(folder / "folder.png"))
    assert "is a folder" in str(done.exception)


def test_items_that_the_model_does_not_know(folder: Path) -> None:
    (folder / "data.csv").write_text("offered,chosen\nsoup;nothing,soup\n")
    done = call(folder, "plot", "MODEL", "-o", "OUT", "--kind", "fit", "--data", "DATA")
    assert "'soup'" in str(done.exception)


def test_records_that_are_skipped_are_told(folder: Path) -> None:
    (folder / "data.csv").write_text("offered,chosen\ntea;nothing,tea\ntea;nothing,pie\n")
    done = call(folder, "plot", "MODEL", "-o", "OUT", "--kind", "fit", "--data", "DATA", "--on-error", "skip")
    assert done.exit_code == 0, done.exception
    assert "skipped" in done.stderr


def test_from_the_shell_it_is_exit_code_2(folder: Path) -> None:
    command = [sys.executable, "-m", "rankstream", "plot", "model.json", "-o", "x.txt"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("rankstream: x.txt is not the name of an image")


def panels_of(name: str) -> dict[str, list[str]]:
    """The groups that a command's help shows, each with its options in order."""
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1"}
    text = CliRunner().invoke(make_app([name]), [name, "--help"], env=wide).output
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("\u256d\u2500 "):
            found[line.split(" \u2500")[0][3:].strip()] = []
        elif found and line.strip("\u2502 *").startswith("--"):
            list(found.values())[-1].append(line.strip("\u2502 *").split()[0])
    return found


def test_help_groups_options_and_shows_the_most_used_first() -> None:
    fit = panels_of("fit")
    assert list(fit) == [
        "Arguments",
        "Model",
        "Input format",
        "Receipts",
        "Older choices",
        "Several markets",
        "Running time",
        "Output",
    ]
    assert [options[0] for options in list(fit.values())[1:]] == [
        "--method",
        "--price-columns",
        "--stock",
        "--since",
        "--by",
        "--budget",
        "--out",
    ]
    decide = panels_of("decide")
    assert list(decide)[1:] == [
        "Options",
        "Constraints",
        "Input format",
        "Receipts",
        "Older choices",
        "Several markets",
        "Running time",
        "Output",
    ]
    assert decide["Options"][0] == "--margins"


def test_help_is_a_tour() -> None:
    text = (
        CliRunner()
        .invoke(make_app(), ["--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})
        .output
    )
    lines = [line for line in text.split("Commands")[1].splitlines()[1:] if len(line.split()) > 3]
    commands = [line.split()[1] for line in lines if not line.startswith("\u2502    ")]  # no second lines of a text
    assert commands == [
        *(
            "open",
            "fit",
            "predict",
            "show",
            "plot",
            "decide",
            "report",
            "stream",
            "drift",
            "compare",
            "reproduce",
        ),
        "serve",
    ]
    assert "--install-completion" in text
