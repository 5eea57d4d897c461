"""What ``rankstream fit`` says and remembers: changes over time, cuts by the clock, where a model comes from."""

import json
from pathlib import Path

import numpy as np

import rankstream as rs
import shell
from rankstream.data.change import change_over_time
from rankstream.models.fit_warnings import fit_warnings

ITEMS = ("tea", "pie", "oat", "no")


def write_choices(path: Path, days: int, changed: int, seed: int = 0) -> None:
    """Thirty choices a day; from some day on, oat is the favourite."""
    random = np.random.default_rng(seed)
    lines = ["time,offered,chosen"]
    for day in range(days):
        worth = {"tea": 2.0, "pie": 1.5, "oat": 6.0 if day >= changed else 0.5, "no": 1.0}
        for _ in range(30):
            offer = [*random.permutation(ITEMS[:3])[: int(random.integers(1, 4))].tolist(), "no"]
            shares = np.array([worth[item] for item in offer])
            chosen = offer[int(random.choice(len(offer), p=shares / shares.sum()))]
            lines.append(f"2024-01-{1 + day:02d},{';'.join(sorted(offer))},{chosen}")
    path.write_text("\n".join(lines) + "\n")


def fitted(folder: Path, *more: str) -> tuple[dict[str, object], str]:
    done = shell.run("fit", "choices.csv", "-o", "model.json", "--method", "nearest", "--json", *more, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_change_is_said_with_its_remedy_and_remembered(tmp_path: Path) -> None:
    write_choices(tmp_path / "choices.csv", 30, 20)
    content, said = fitted(tmp_path)
    changed = content["changed"]
    assert isinstance(changed, dict)
    assert changed["p_value"] < 1e-6
    assert changed["item"] == "oat"
    assert "--since 2024-01-" in said
    assert "--half-life" in said
    about = rs.load_model(tmp_path / "model.json").about
    assert about["changed"] == changed["sentence"]
    assert fit_warnings(about) == [changed["sentence"]]  # ``decide`` and ``report`` repeat it


def test_a_steady_market_and_the_remedies_say_nothing(tmp_path: Path) -> None:
    write_choices(tmp_path / "choices.csv", 30, 40)
    content, said = fitted(tmp_path)
    assert content["changed"] is None
    assert not said
    write_choices(tmp_path / "choices.csv", 30, 20)
    later, _ = fitted(tmp_path, "--since", "2024-01-21")
    assert later["changed"] is None
    assert later["choices"] == 300
    faded, _ = fitted(tmp_path, "--half-life", "3d")
    assert isinstance(faded["choices"], float)
    assert faded["choices"] < 300.0


def test_a_model_remembers_where_it_comes_from(tmp_path: Path) -> None:
    write_choices(tmp_path / "choices.csv", 10, 40)
    content, _ = fitted(tmp_path, "--seed", "3")
    about = rs.load_model(tmp_path / "model.json").about
    assert (about["method"], about["seed"], about["version"]) == ("nearest", 3, rs.__version__)
    assert about["certificate"]["gap"] == content["gap"]
    assert content["distance"] - content["proven_least_distance"] == content["gap"]  # type: ignore[operator]
    assert about["times"] == ["2024-01-01", "2024-01-10"]
    assert about["data"]["digest"] == rs.read_counts(tmp_path / "choices.csv").digest()
    shown = json.loads(shell.run("show", "model.json", "--json", cwd=tmp_path).stdout)
    assert sum(map(sum, about.pop("seen")["tallies"])) == content["choices"]  # which are too long to be shown
    assert shown["about"] == about


def test_a_digest_is_of_the_choices_not_of_their_order() -> None:
    one = rs.ChoiceCounts(rs.Assortments([("a", "b"), ("b", "c")]), [1, 2, 3, 4])
    other = rs.ChoiceCounts(rs.Assortments([("c", "b"), ("b", "a")]), [4, 3, 2, 1])
    assert one.digest() == other.digest()
    assert one.digest() != rs.ChoiceCounts(one.assortments, [1, 2, 3, 5]).digest()


def test_a_fit_without_time_says_that_it_was_cut_short(tmp_path: Path) -> None:
    write_choices(tmp_path / "choices.csv", 10, 40)
    done = shell.run("fit", "choices.csv", "--method", "max-entropy", "--budget", "0", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cut_short"] is True
    model = rs.load_model(tmp_path / "model.json")
    assert model.about["cut_short"] is True
    said = "The fit stopped early"
    assert said in shell.run("show", "model.json", cwd=tmp_path).stdout
    told = shell.run("predict", "model.json", "--offer", str(model.items[0]), "--json", cwd=tmp_path).stdout
    assert said in json.loads(told)[0]["warnings"][0]
    margins = "item,margin\n" + "".join(f"{item},1\n" for item in model.items if item != model.no_choice)
    (tmp_path / "items.csv").write_text(margins)
    assert said in shell.run("decide", "model.json", "--margins", "items.csv", cwd=tmp_path).stdout
    options = ("--data", "choices.csv", "--no-intervals", "--margins", "items.csv")
    assert shell.run("report", "model.json", *options, cwd=tmp_path).returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert said in page.split("<h2")[1]  # what to do
    again = shell.run("fit", "choices.csv", "--method", "max-entropy", "--timeout", "0", cwd=tmp_path).stdout
    assert said in again
    whole = rs.fit_within(rs.read(tmp_path / "choices.csv").counts, method="mnl")
    assert "cut_short" not in whole.model.about


def test_false_alarms_are_rare() -> None:
    offers = rs.Assortments([ITEMS, ITEMS[:2], ITEMS[1:]])
    random, alarms = np.random.default_rng(0), 0
    for _ in range(200):
        slices = [
            rs.ChoiceCounts(
                offers,
                np.concatenate([random.multinomial(40, np.full(size, 1 / size)) for size in (4, 2, 3)]).astype(float),
            )
            for _ in range(8)
        ]
        alarms += change_over_time(slices, list(range(8))) is not None
    assert alarms <= 5  # at level 0.01
