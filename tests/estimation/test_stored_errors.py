"""Standard errors that a model remembers from its fit, and what noise alone would make of a distance."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream.estimation import errors
from rankstream.estimation.errors import StoredErrors
from rankstream.estimation.misfit import Misfit, noise_distance
from shell import run


@pytest.fixture(scope="module")
def counts() -> rs.ChoiceCounts:
    return next(rs.simulate.market(3, n_items=6, n_offers=15, n_test=1).stream(first=1500))


@pytest.fixture(scope="module")
def model(counts: rs.ChoiceCounts) -> Any:
    return rs.fit_within(counts, method="max-entropy", errors=True).model


def test_stored_errors_are_those_of_a_bootstrap(counts: rs.ChoiceCounts, model: Any, tmp_path: Path) -> None:
    """Ten refits are few: intervals are wider than normal ones by Student's factor, 2.262 over 1.960."""
    many = rs.Bootstrap(counts, "max-entropy", errors.REPLICATES, model=model)
    model.save(tmp_path / "model.json")
    stored = StoredErrors.of(rs.load_model(tmp_path / "model.json"))
    assert stored is not None
    assert stored.replicates == 10
    for item, (share, low, high) in many.predict(model.items).items():
        assert stored.predict()[item] == pytest.approx(
            (share, max(0.0, share - 1.1542 * (share - low)) if low else 0.0, share + 1.1542 * (high - share)), abs=1e-4
        )
    moves, found = many.substitution(), stored.substitution()
    assert found.low is not None
    assert found.high is not None
    assert moves.high is not None
    inner = moves.high < 0.8
    wide = moves.shares + 1.1542 * (moves.high - moves.shares)
    assert found.high[inner] == pytest.approx(wide[inner], abs=1e-4)
    assert (found.low <= found.shares + 1e-12).all()
    types = stored.favourites()
    assert {key: one.share for key, one in types.items()} == pytest.approx(
        {key: one.share for key, one in many.favourites(model.no_choice).items()}
    )
    assert all(one.low <= one.share <= one.high for one in types.values())


def test_errors_can_be_left_out_and_files_may_say_anything(counts: rs.ChoiceCounts, model: Any) -> None:
    assert StoredErrors.of(rs.fit_within(counts, method="max-entropy").model) is None
    assert StoredErrors.of(rs.fit_within(counts, method="mnl", errors=True).model) is None
    weighed = rs.ChoiceCounts(counts.assortments, counts.tallies * 0.7)
    assert StoredErrors.of(rs.fit_within(weighed, method="max-entropy", errors=True).model) is None
    good = model.about["errors"]
    changes: list[Any] = [
        {"offer": good["offer"][1:]},
        {"shares": good["shares"][1:]},
        {"gone": ["x"]},
        {"types": [1]},
        {"replicates": "many"},
        {"substitution": [["a"]]},
    ]
    for wrong in (3, {}, *(good | change for change in changes)):
        other = rs.models.EntropyModel(model.prior, model.assortments, model.duals).note(errors=wrong)
        assert StoredErrors.of(other) is None


def test_no_time_left_means_no_errors(counts: rs.ChoiceCounts) -> None:
    late: list[float] = [0.0]

    def hear(text: str, _: float) -> None:
        late[0] = 1e9 if text.startswith("refitted") else 0.0

    found = rs.fit_within(counts, 60.0, "max-entropy", watch=hear, clock=lambda: late[0], errors=True)
    assert not found.cut_short
    assert "errors" not in found.model.about


def test_show_prints_intervals_and_marks_what_the_data_do_not_support(tmp_path: Path) -> None:
    lines = ["offered,chosen,count", "a;b;c;no,a,30", "a;b;c;no,b,9", "a;b;c;no,c,1", "a;b;c;no,no,20", "b;c;no,b,6"]
    lines += ["b;c;no,c,2", "b;c;no,no,3", "a;c;no,a,5", "a;c;no,no,4", "a;b;no,a,9", "a;b;no,no,6", "c;no,no,9"]
    (tmp_path / "choices.csv").write_text("\n".join([*lines, "c;no,c,1"]) + "\n")
    done = run("fit", "choices.csv", "--method", "max-entropy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "(root of the summed squared errors; sampling noise alone: " in done.stdout
    shown = run("show", "model.json", cwd=tmp_path).stdout
    assert "95 % intervals from standard errors stored by 'fit' (10 refits; --data makes more)" in shown
    assert " %, and" not in shown
    assert "; sampling noise alone: " in shown
    assert "A gain in parentheses, in the last column, may be chance: its interval starts at 0." in shown
    content = json.loads(run("show", "model.json", "--json", cwd=tmp_path).stdout)
    row = next(row for row in content["items"] if row["item"] == "c")
    name, (low, high) = next((name, ends) for name, ends in row["gains_intervals"].items() if ends[0] == 0.0)
    assert f"({name} {100 * row['gains'][name]:.0f} % [{100 * low:.0f}, {100 * high:.0f}])" in shown
    without = ("--method", "max-entropy", "--no-standard-errors")
    assert run("fit", "choices.csv", *without, cwd=tmp_path).returncode == 0
    assert "intervals from" not in run("show", "model.json", cwd=tmp_path).stdout


def test_noise_gives_the_distance_that_simulated_choices_have() -> None:
    random = np.random.default_rng(0)
    offers = rs.Assortments([("a", "b", "c"), ("a", "c"), ("b", "c"), ("a", "b")])
    truth = rs.RankingModel("abc", [("a", "b", "c"), ("c", "b", "a")], [0.3, 0.7])
    totals, squares = np.array([40, 10, 25, 0]), []
    shares = truth.probabilities(offers)
    for _ in range(4000):
        drawn = [random.multinomial(size, part) for size, part in zip(totals, np.split(shares, [3, 5, 7]), strict=True)]
        counts = rs.ChoiceCounts(offers, np.concatenate(drawn).astype(float))
        root = np.sqrt(counts.totals / counts.totals.mean())[offers.owner]
        data = np.where(counts.totals[offers.owner] > 0, np.nan_to_num(counts.frequencies()), shares)
        squares.append(float(np.sum((root * (shares - data)) ** 2)))
    assert noise_distance(truth, counts) ** 2 == pytest.approx(float(np.mean(squares)), rel=0.04)


def test_a_share_that_is_also_a_type_has_one_interval() -> None:
    """Those who buy nothing are an item's share and a customer type: "9 % [6, 12]" and "9 % [5, 14]" contradict."""
    offers = rs.Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "no")])
    many = rs.Bootstrap(rs.ChoiceCounts(offers, [50, 30, 20, 70, 30, 60, 40]), "mnl", 5)
    many.misfit = Misfit(0.01, 0.03, 2.0, doubt=0.02)
    shares = many.predict(("tea", "pie", "no"))
    assert many.favourites("no")[()] == pytest.approx(shares["no"])
    assert all(many.favourites(places=1)[item,] == pytest.approx(share) for item, share in shares.items())
    content = errors.describe_errors(many)
    types = {tuple(key): error for key, error in content["types"]}
    assert types[()] == content["shares"][content["offer"].index("no")]


def test_intervals_are_two_errors_wide_within_0_and_1() -> None:
    model = rs.RankingModel("abn", [tuple("abn"), tuple("ban"), tuple("nab")], [0.5, 0.3, 0.2], no_choice_code=2)
    content = {
        "replicates": 20, "offer": list("abn"), "gone": list("ba"), "shares": [0.1, 0.2, 0.01],
        "substitution": [[0.05, 0.0, 0.1], [0.0, 0.6, 0.01]], "types": [[["a", "b"], 0.1], [["n"], 0.2]],
    }  # fmt: skip
    model.note(errors=content)
    stored = StoredErrors.of(model)
    assert stored is not None
    shares = stored.predict()
    assert shares["a"] == pytest.approx((0.5, 0.5 - 0.196, 0.5 + 0.196))
    assert shares["b"] == pytest.approx((0.3, 0.0, 0.3 + 0.392))
    moves = stored.substitution()
    wide = np.array([[0.0, 0.6, 0.01], [0.05, 0.0, 0.1], [np.nan] * 3])  # of a, b and n
    assert moves.low == pytest.approx(np.maximum(moves.shares - 1.96 * wide, 0.0), nan_ok=True)
    assert moves.high == pytest.approx(np.minimum(moves.shares + 1.96 * wide, 1.0), nan_ok=True)
    types = stored.favourites()
    assert list(types) == [("a", "b")]  # only those with errors, of items that were gone
    assert types["a", "b"] == pytest.approx((0.5, 0.304, 0.696))
    for change in (
        {"replicates": 1}, {"offer": list("ab")}, {"gone": ["b", "x"]}, {"gone": ["b"]}, {"shares": [0.1, 0.2]},
        {"substitution": [[0.1] * 3]}, {"types": [[["a", "b"], "many"]]}, {"types": 3},
    ):  # fmt: skip
        model.note(errors=content | change)
        assert StoredErrors.of(model) is None, change
