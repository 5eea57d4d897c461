import json
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import rankstream as rs
from choice_files import write_transactions
from rankstream.cli.app import make_app
from rankstream.cli.fit import METHODS, PRICED
from rankstream.data import simulate
from rankstream.estimation.estimate import fit_within
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.files import load_model
from rankstream.solver.runs import CHUNK_ROUNDS
from waits import Ticks


@pytest.fixture
def data(tmp_path: Path) -> Path:
    market = simulate.market(0, n_items=6, n_offers=12, n_test=1)
    write_transactions(tmp_path / "choices.csv", next(market.stream(first=2000)))
    return tmp_path / "choices.csv"


def call(*words: object) -> Result:
    return CliRunner().invoke(make_app(), [str(word) for word in words])


def test_from_file_to_answer(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    done = call("fit", data, "-o", out)
    assert done.exit_code == 0, done.output
    assert "by maximum entropy" in done.output
    assert isinstance(load_model(out), EntropyModel)
    assert "item 1" in call("predict", out, "--offer", "item 1;item 2;nothing").output
    for method in ("primal-dual", "nearest"):
        sparse = json.loads(call("fit", data, "-o", out, "--method", method, "--json").output)
        assert (sparse["kind"], sparse["method"]) == ("rankings", method)
        assert sparse["choices"] == 2000
        assert sparse["proven_least_distance"] <= sparse["distance"]
        assert isinstance(load_model(out), rs.RankingModel)


def test_a_second_no_purchase_option_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text("offered,chosen,count\ntea;nothing,tea,30\ntea;nothing,nothing,20\n")
    words = ("fit", tmp_path / "choices.csv", "-o", tmp_path / "model.json", "--method", "mnl", "--no-choice")
    told = "Warning: 'left' is added to every offer, but the data have 'nothing' already."
    assert told in call(*words, "left").output
    assert "Warning" not in call(*words, "nothing").output


def test_bad_records_stop_or_are_skipped_and_told(data: Path, tmp_path: Path) -> None:
    data.write_text(data.read_text() + "item 1;item 2,item 6,1\n")
    stopped = call("fit", data, "-o", tmp_path / "model.json")
    assert isinstance(stopped.exception, ValueError)
    assert "item 6" in str(stopped.exception)
    assert not (tmp_path / "model.json").exists()
    rejects = tmp_path / "rejects.csv"
    skipped = call("fit", data, "-o", tmp_path / "model.json", "--on-error", "skip", "--rejects", rejects)
    assert skipped.exit_code == 0, skipped.output
    assert "item 6" in rejects.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "best"], "--method is 'best': choose one of 'auto'"),
        (["--method", "mnl", "--tolerance", "0.1"], "The method 'mnl' has no tolerance"),
        (["-o", "nowhere/model.json"], "The folder nowhere does not exist"),
    ],
)
def test_bad_options_are_one_sentence(data: Path, words: list[str], message: str) -> None:
    assert message in str(call("fit", data, *words).exception)


def test_the_budget_is_kept_and_the_model_is_certified() -> None:
    items, random = tuple(f"item {number}" for number in range(19)), np.random.default_rng(0)
    truth = simulate.mixed_mnl(items, 5, 5.0, random)
    offers = rs.Assortments(simulate.random_offers(items, 420, random), truth.items)
    counts = rs.ChoiceCounts(offers)
    counts.observe_coordinates(simulate.draw_choices(offers, truth.probabilities(offers), 20_000, random))
    told: list[str] = []
    clock = Ticks(0.1)  # a second for ten readings
    found = fit_within(counts, budget=1.0, tolerance=0.0, watch=lambda text, _: told.append(text), clock=clock)
    assert 10 <= clock.readings <= 20  # at the latest a few steps after the budget
    assert found.certificate.lower <= found.certificate.upper
    assert any("round" in text for text in told)
    assert found.certificate.upper - found.certificate.lower == pytest.approx(found.certificate.gap)
    assert (found.method.name, found.converged, found.cut_short) == ("nearest", False, True)


def test_without_time_there_is_still_a_round() -> None:
    market = simulate.market(0, n_items=6, n_offers=12, n_test=1)
    assert fit_within(next(market.stream()), budget=0.0, method="nearest").rounds == 1
    assert fit_within(next(market.stream()), budget=0.0, method="primal-dual").rounds == CHUNK_ROUNDS


@pytest.mark.parametrize(("method", "rounds"), [("nearest", 3), ("primal-dual", 3 * CHUNK_ROUNDS)])
def test_an_interrupt_keeps_the_model_so_far(method: str, rounds: int) -> None:
    market = simulate.market(0, n_items=6, n_offers=12, n_test=1)
    told: list[str] = []

    def press(text: str, _: float) -> None:
        told.append(text)
        if text.startswith(f"round {rounds}"):
            signal.raise_signal(signal.SIGINT)

    found = fit_within(next(market.stream()), method=method, tolerance=0.0, watch=press)
    assert (found.rounds, found.converged) == (rounds, False)
    assert found.certificate.lower <= found.certificate.upper
    with pytest.raises(KeyboardInterrupt):  # afterwards Ctrl-C is what it was
        signal.raise_signal(signal.SIGINT)


def test_an_inexact_oracle_is_served_by_the_solver() -> None:
    items, random = tuple(f"item {number}" for number in range(70)), np.random.default_rng(0)
    truth = simulate.mixed_mnl(items, 3, 5.0, random)
    offers = rs.Assortments(simulate.random_offers(items, 100, random, largest=4), truth.items)
    counts = rs.ChoiceCounts(offers)
    counts.observe_coordinates(simulate.draw_choices(offers, truth.probabilities(offers), 5_000, random))
    found = fit_within(counts, budget=1.0)
    assert found.method.name == "primal-dual"
    assert found.rounds >= 1
    assert found.certificate.lower <= found.certificate.upper


def test_bounds_of_all_methods_agree(tmp_path: Path) -> None:
    lines = ["offered,chosen,count", "a;b,a,1000", "a;b,b,9000", "a;b;c,a,8000", "a;b;c,b,1000", "a;b;c,c,1000"]
    lines += [f"{offer},{item},1" for offer in ("d;e", "d;f", "e;f", "d;e;f") for item in offer.split(";")]
    (tmp_path / "uneven.csv").write_text("\n".join(lines) + "\n")
    found = [
        json.loads(call("fit", tmp_path / "uneven.csv", "-o", tmp_path / "m.json", "--method", method, "--json").output)
        for method in METHODS
        if method not in PRICED
    ]
    for one in found:
        assert all(one["proven_least_distance"] <= other["distance"] + 1e-9 for other in found)


def test_a_folder_is_no_model_file(data: Path, tmp_path: Path) -> None:
    assert "is a folder" in str(call("fit", data, "-o", tmp_path).exception)


def test_one_choice_of_one_item_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("offered,chosen\ntea,tea\n")
    found = CliRunner().invoke(make_app(), ["fit", str(tmp_path / "one.csv"), "-o", str(tmp_path / "model.json")])
    assert "1 choice from 1 offer; a model of 1 ranking.\n" in found.stdout
