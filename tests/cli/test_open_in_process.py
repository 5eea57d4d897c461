"""``rankstream open`` without a server and a browser: which markets it makes, what it starts, and what it refuses."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream import PriceLevels, RankingModel
from rankstream.cli.options import ReadingOptions
from rankstream.service.storage.log import market_row, open_log
from shell import run

pytestmark = pytest.mark.quick
ROWS = "offered,chosen\ntea;pie,tea\n"


class Opened:
    """What ``open`` gave to the server, the importer and the browser."""

    def __init__(self) -> None:
        self.served: list[Any] = []
        self.imported: list[Any] = []
        self.browsed: list[str] = []
        self.ended: list[str] = []

    def run(self, place: Path, host: str, port: int, options: Any, ready: Any) -> None:
        log = open_log(place)
        markets = [name for name in ("choices", "more", "model") if market_row(log, name) is not None]
        log.close()
        assert len(self.imported) <= len(self.served)  # nothing is read before the server answers
        ready("http://127.0.0.1:7000")
        self.served.append((place, host, port, options, markets))

    def start(self, *words: str, answers: bool) -> Any:
        assert not answers
        self.imported.append((words[0], words[1], json.loads(words[2])))
        end = SimpleNamespace(close=lambda: self.ended.append("close"))
        return SimpleNamespace(stdin=end, wait=lambda: self.ended.append("wait"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Opened:
    found = Opened()
    monkeypatch.setattr("rankstream.service.run.run", found.run)
    monkeypatch.setattr("rankstream.service.processes.worker.start", found.start)
    monkeypatch.setattr("webbrowser.open", found.browsed.append)
    (tmp_path / "choices.csv").write_text(ROWS)
    (tmp_path / "more.csv").write_text(ROWS)
    RankingModel("ab", [("a", "b")], [1.0]).save(tmp_path / "model.json")
    return found


def test_one_file_is_imported_and_its_page_is_shown(opened: Opened, tmp_path: Path) -> None:
    done = run("open", "choices.csv", "--folder", "kept", "--seed", "3", "--budget", "9", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    ((place, host, port, options, markets),) = opened.served
    assert (str(place), host, port, markets) == ("kept", "127.0.0.1", 0, ["choices"])
    assert (options.learns, options.seed, options.link.page) == (False, 3, "/markets/choices")
    ((what, folder, (task,)),) = opened.imported
    assert (what, folder) == ("processes.importer", "kept")
    assert (task["path"], task["name"], task["market"]) == (str(tmp_path / "choices.csv"), "choices.csv", "choices")
    assert (task["by"], task["model"], task["fit"]) == ([], False, {"method": "auto", "budget": 9.0, "seed": 3})
    assert task["reading"]["price_levels"] == "occurring"
    (address,) = opened.browsed
    assert done.stdout == f"Open {address} in a browser: the link is valid once, for a minute. Ctrl-C ends it.\n"
    assert opened.ended == ["close", "wait"]
    again = run("open", "choices.csv", "--folder", "kept", cwd=tmp_path)
    assert again.returncode == 2
    assert "There is a market 'choices' already: rename the file, or name another folder." in again.stderr


def test_several_files_or_groups_begin_with_the_list_of_markets(opened: Opened, tmp_path: Path) -> None:
    done = run("open", "choices.csv", "model.json", "--no-browser", "--json", "--port", "7001", cwd=tmp_path)
    ((place, _, port, options, markets),) = opened.served
    assert (port, options.link.page, markets) == (7001, "/", ["choices", "model"])
    assert not place.exists()  # a temporary folder
    assert [task["model"] for task in opened.imported[0][2]] == [False, True]
    assert opened.browsed == []
    told = json.loads(done.stdout)
    assert told["url"] == "http://127.0.0.1:7000"
    assert told["open"].startswith("http://127.0.0.1:7000/")
    assert run("open", "more.csv", "--by", "store, kind", cwd=tmp_path).returncode == 0
    assert (opened.served[1][3].link.page, opened.imported[1][2][0]["by"]) == ("/", ["store", "kind"])


def test_options_reach_the_importer_as_json(opened: Opened, tmp_path: Path) -> None:
    levels = '{"tea": [3, 3.5]}'
    assert run("open", "choices.csv", "--price-levels", levels, cwd=tmp_path).returncode == 0
    assert opened.imported[0][2][0]["reading"]["price_levels"] == {"tea": [3, 3.5]}
    (tmp_path / "stock.csv").write_text("time,item,on_hand\n")
    words = ("--stock", "stock.csv", "--visits", "visits.csv", "--price-list", "paid", "--rejects", "bad.csv")
    assert run("open", "more.csv", *words, cwd=tmp_path).returncode == 0
    reading = opened.imported[1][2][0]["reading"]
    absolute = {name: str(tmp_path / f"{name}.csv") for name in ("stock", "visits")}
    assert {name: reading[name] for name in (*absolute, "prices")} == absolute | {"prices": "paid"}
    assert reading["rejects"] == str(tmp_path / "bad.csv")


def test_the_folder_of_a_service_is_opened_alone(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    open_log(tmp_path / "shop").close()
    assert run("open", "shop", cwd=tmp_path).returncode == 0
    ((place, _, _, options, _),) = opened.served
    assert (str(place), options.learns, options.link.page) == ("shop", True, "/")
    assert opened.imported == opened.ended == []
    for words in (("shop", "choices.csv"), ("choices.csv", "shop"), ("shop", "--folder", "kept")):
        refused = run("open", *words, cwd=tmp_path)
        assert refused.returncode == 2
        assert "shop is the folder of a service: open it alone, without --folder." in refused.stderr
    missing = run("open", "choices.csv", "none.csv", cwd=tmp_path)
    assert "There is no file none.csv: check its name and folder." in missing.stderr
    assert len(opened.served) == 1


def fitted(reading: dict[str, Any], **about: Any) -> Any:
    levels = PriceLevels({"tea": [3.0, 4.0]})
    return SimpleNamespace(about={"reading": reading} | about, price_levels=levels)


def test_options_of_the_fit_hold_until_others_are_given() -> None:
    model = fitted({"no_choice": "none", "format": "wide", "columns": "a=b", "outside_share": 0.25, "sheet": 3})
    found = ReadingOptions().as_fitted(model)
    assert (found.no_choice, found.format, found.columns, found.outside_share) == ("none", "wide", "a=b", 0.25)
    assert found.sheet is None  # it is no text
    assert (found._levels, found._market, found._model) == (None, None, model)
    assert found._source == (
        "read with the options of the fit, --outside-share 0.25, --no-choice none, --format wide, --columns a=b; pass "
        "other options to change that"
    )
    other = ReadingOptions(format="long").as_fitted(model)
    assert (other.format, other.columns, other.no_choice) == ("long", None, "none")
    columns = ReadingOptions(columns="x=y").as_fitted(model)
    assert (columns.format, columns.columns) == (None, "x=y")
    nothing = ReadingOptions(no_choice="left").as_fitted(model)
    assert (nothing.no_choice, nothing.outside_share) == ("left", None)
    assert ReadingOptions().as_fitted(fitted({}))._source == ""


@pytest.mark.parametrize(("share", "is_known"), [(0.999, True), (0, True), (1.0, False), (-0.1, False), (True, False)])
def test_a_stored_share_is_a_share(share: Any, is_known: bool) -> None:
    found = ReadingOptions().as_fitted(fitted({"outside_share": share}))
    assert (found.outside_share is not None) == is_known


def test_levels_of_the_fit_hold_for_its_columns_of_prices() -> None:
    model = fitted({"price_columns": "cost"}, market={"store": "York"})
    found = ReadingOptions().as_fitted(model)
    assert (found.price_columns, found._levels, found._market) == ("cost", model.price_levels, {"store": "York"})
    assert found.arguments()["price_levels"] is model.price_levels
    own = ReadingOptions(price_levels='{"tea": [5]}').as_fitted(model)
    assert own._levels is None
    assert own.arguments()["price_levels"] == PriceLevels({"tea": [5]})
    assert ReadingOptions().as_fitted(fitted({}))._levels is None
    assert ReadingOptions(partitions="store, kind").arguments()["partitions"] == ["store", "kind"]
    assert ReadingOptions().arguments()["partitions"] == ()
