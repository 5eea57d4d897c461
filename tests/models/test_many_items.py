"""Many items and many offers: work that is bounded, colours that differ, and pictures that say what they show."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import rankstream as rs
from rankstream import plots
from rankstream.models.answers import most_chosen, substitution
from rankstream.models.parametric.markov_chain import MarkovChainModel
from shell import run
from strategies import compiled_only

MANY = 3000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    orders = np.array([random.permutation(MANY) for _ in range(30)])
    names = [f"item {number}" for number in range(MANY)]
    rs.RankingModel.from_codes(names, orders, np.full(30, 1 / 30)).save(folder / "model.json")
    return folder


def test_of_a_hostile_model_the_first_items_are_shown(large: Path) -> None:
    done = run("show", "model.json", "--top", "1", cwd=large)
    assert done.returncode == 0, done.stderr
    assert "Only the 100 most chosen of 3,000 items are shown; --json lists all." in done.stdout
    assert len(done.stdout.splitlines()) < 120
    assert max(map(len, done.stdout.splitlines())) < 300


def test_hostile_models_are_compared_by_their_first_items(large: Path) -> None:
    done = run("drift", "model.json", "model.json", cwd=large)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Compared: customer types whose favourite is one of the 100 most chosen items.\n"


def test_the_matrix_of_a_hostile_model_has_its_first_items(large: Path) -> None:
    done = run("plot", "model.json", "-o", "matrix.svg", "--kind", "substitution", cwd=large)
    assert done.returncode == 0, done.stderr
    assert "the 60 most chosen of 3,000 items" in (large / "matrix.svg").read_text()


def test_a_large_chain_has_first_two_choices(tmp_path: Path) -> None:
    size = 80
    steps = np.full((size, size), 1 / size)
    MarkovChainModel(
        items=tuple(f"item {number}" for number in range(size)), log_likelihood=-1.0, iterations=1, converged=True,
        n_parameters=1, arrival=np.full(size, 1 / size), transitions=steps,
    ).save(tmp_path / "chain.json")  # fmt: skip
    assert json.loads(run("show", "chain.json", "--json", cwd=tmp_path).stdout)["segments_by"] == "first two choices"
    assert "The largest customer types by their first two choices:" in run("show", "chain.json", cwd=tmp_path).stdout
    assert run("plot", "chain.json", "-o", "x.png", cwd=tmp_path).returncode == 0


def test_rows_that_are_asked_for_are_those_of_the_whole() -> None:
    model = rs.RankingModel(range(5), [(0, 1, 2, 3, 4), (1, 0, 2, 3, 4), (3, 1, 0, 2, 4)], [0.5, 0.3, 0.2])
    whole, some = model.substitution(), model.substitution(None, [1, 3])
    assert some.shares[[1, 3]] == pytest.approx(whole.shares[[1, 3]])
    assert not some.shares[[0, 2, 4]].any()
    assert most_chosen(model, 2) == (0, 1)
    part = whole.among([1, 3])
    assert part.items == (1, 3)
    assert part.shares == pytest.approx(substitution(model).shares[np.ix_([1, 3], [1, 3])])


def styles(items: int) -> set[tuple[object, ...]]:
    offers = rs.Assortments([range(items)])
    axes = plots.shares_over_time([rs.ChoiceCounts(offers, np.ones(items))] * 2, range(items), Figure().subplots())
    drawn = [
        line for line in axes.get_lines() if line.get_linestyle() != "None" and line.get_marker() not in ("_", "|")
    ]
    return {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in drawn}


@pytest.mark.parametrize("items", [12, 35])
def test_every_item_has_its_own_colour_and_line(items: int) -> None:
    assert len(styles(items)) == items
    assert len({(colour, line) for colour, line, _ in styles(items)}) == items


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    lines = ["time,offered,chosen,count"]
    for number in range(6):
        offer = ["tea", f"cake {number}", "no"]
        lines += [f"2024-0{month}-01,{';'.join(offer)},{item},{20 - number}" for month in (1, 2) for item in offer]
    (tmp_path / "choices.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_pictures_of_shares_say_which_offer_they_show(shop: Path) -> None:
    words = ["plot", "choices.csv", "--kind", "shares", "-o", "shares.svg"]
    done = run(*words, cwd=shop)
    shown = "It shows the most frequent of 6 offers; for another, add --offer 'cake 0;no;tea'."
    assert done.stdout == f"Saved shares.svg. {shown}\n"
    drawing = (shop / "shares.svg").read_text()
    assert "Shares over time, by month" in drawing
    assert "cake 0" in drawing
    assert "cake 1" not in drawing
    assert json.loads(run(*words, "--json", cwd=shop).stdout)["offer"] == ["cake 0", "no", "tea"]


def test_an_offer_can_be_chosen(shop: Path) -> None:
    words = ["plot", "choices.csv", "--kind", "shares", "-o", "shares.svg", "--offer", "tea;no;cake 5"]
    assert run(*words, cwd=shop).stdout == "Saved shares.svg.\n"
    drawing = (shop / "shares.svg").read_text()
    assert "cake 5" in drawing
    assert "frequent" not in drawing
    said = run(*words[:-1], "tea;no", cwd=shop).stderr
    assert said == "rankstream: No record offers exactly 'tea;no': choose an offer that occurs in the data.\n"


def test_readers_options_are_there_at_the_shell(tmp_path: Path) -> None:
    (tmp_path / "joined.csv").write_text("offered,chosen\ntea/pie,tea\ntea/pie,pie\n")
    fit = ["fit", "--method", "mnl", "-o", "model.json"]
    assert run(*fit, "joined.csv", cwd=tmp_path).returncode == 2
    assert run(*fit, "joined.csv", "--separator", "/", cwd=tmp_path).returncode == 0
    (tmp_path / "chosen=tea").mkdir()
    (tmp_path / "chosen=tea" / "sales.csv").write_text("offered\ntea;pie\n")
    assert run(*fit, "chosen=tea/sales.csv", cwd=tmp_path).returncode == 2
    assert run(*fit, "chosen=tea/sales.csv", "--partitions", "chosen", cwd=tmp_path).returncode == 0
    assert rs.load_model(tmp_path / "model.json").about["reading"]["partitions"] == "chosen"
    (tmp_path / "wide.csv").write_text('"Jam, Strawberry",tea,chosen\n1,1,tea\n1,1,"Jam, Strawberry"\n')
    columns = '{"items": ["Jam, Strawberry", "tea"]}'
    assert run(*fit, "wide.csv", "--columns", columns, cwd=tmp_path).returncode == 0
    assert rs.load_model(tmp_path / "model.json").items == ("Jam, Strawberry", "tea")


def test_a_sheet_can_be_named_at_the_shell(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    for row in (["offered", "chosen"], ["tea;pie", "tea"], ["tea;pie", "pie"]):
        book.create_sheet("sales") if "sales" not in book.sheetnames else None
        book["sales"].append(row)
    book.save(tmp_path / "book.xlsx")
    fit = ["fit", "book.xlsx", "--method", "mnl"]
    assert "notes" in run(*fit, cwd=tmp_path).stderr
    assert run(*fit, "--sheet", "sales", cwd=tmp_path).returncode == 0


@compiled_only
def test_the_three_numbers_of_a_certificate_fit_together(tmp_path: Path) -> None:
    lines = [{"offered": ["tea", "pie"], "chosen": "tea"}, {"offered": ["tea", "pie", "no"], "chosen": "pie"}]
    (tmp_path / "choices.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in 30 * lines))
    words = ["stream", "choices.jsonl", "--to-end", "--publish", "sparse", "--rounds", "3", "--out"]
    found = json.loads(run(*words, "first", "--json", cwd=tmp_path).stdout.splitlines()[-1])
    assert found["distance"] - found["proven_least_distance"] == pytest.approx(found["gap"])
    text = run(*words, "again", cwd=tmp_path).stdout
    assert f"Distance from the observed shares {found['distance']:.4f} (root of the summed squared errors). " in text
    assert f"No ranking model can be closer than {found['proven_least_distance']:z.4f} (proven)" in text
    assert f"at most {found['gap']:.4f} could still be gained." in text
