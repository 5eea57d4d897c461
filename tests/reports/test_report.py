"""``rankstream report``: one page that needs nothing else, says what was found, and lets no label escape."""

import csv
import json
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import price_decide_cases as prices
from html_pages import HOSTILE, Page
from naive_prices_decide import ranked_offers
from rankstream import Assortments, ChoiceCounts, RankingModel, estimate, load_model
from rankstream.decide import best_offer
from rankstream.decide.decision import Units
from rankstream.decide.intervals import MIN_REPLICATES, REPLICATES
from rankstream.estimation.intervals import Share
from rankstream.models.answers import Substitution
from rankstream.reports import findings
from rankstream.reports.blocks import Chart, Section, TableBlock, static
from rankstream.reports.make import Report, report
from rankstream.reports.origin import proven
from rankstream.reports.sections import demand_section, fit_section, substitution_section
from shell import run

pytestmark = pytest.mark.quick

QUICK = ("--replicates", "3")


def check(text: str) -> Page:
    """What every page must be."""
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("script") == 2  # what draws the charts, and nothing from elsewhere
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    allowed = re.findall(r"'sha256-([^']+)'", text[: text.index("<style>")])
    own = [page.texts["style"][0], *page.texts["script"]]
    assert allowed == [b64encode(sha256(part.encode()).digest()).decode() for part in own]
    outside = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", outside)
    assert page.tags.count("details") == page.tags.count("figure")
    for name, value in page.attributes:
        assert name != "data-values" or json.loads(value)
    assert len(text.encode()) < 1_000_000
    return page


def write_choices(path: Path, items: list[str], number: int = 400) -> None:
    """Choices with times, half of the time each way; two of the lines are bad."""
    random = np.random.default_rng(0)
    lines = []
    for hour in range(number):
        offer = [items[place] for place in sorted(random.permutation(len(items))[:2].tolist())] + ["nothing"]
        likes = [3.0 if item == items[0] and hour > number / 2 else 1.0 for item in offer]
        chosen = offer[int(random.choice(3, p=np.array(likes) / sum(likes)))]
        time = f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00"
        lines.append(json.dumps({"time": time, "offered": offer, "chosen": chosen}))
    path.write_text("\n".join([*lines, "{", '{"time": "2024-01-02", "offered": ["a"], "chosen": "b"}']) + "\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("report")
    write_choices(folder / "choices.jsonl", HOSTILE)
    with (folder / "items.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("item", "margin"), *((item, 1 + place) for place, item in enumerate(HOSTILE))])
    skip = ("--on-error", "skip", "--no-choice", "nothing")
    done = run("fit", "choices.jsonl", "-o", "model.json", "--method", "nearest", *skip, cwd=folder)
    assert done.returncode == 0, done.stderr
    words = ("report", "model.json", "--data", "choices.jsonl", "--margins", "items.csv", *QUICK, "--on-error", "skip")
    done = run(*words, "-o", "page.html", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    again = run(*words, "-o", "again.html", cwd=folder)
    assert "Saved again.html" in again.stdout
    return folder, json.loads(done.stdout)


def test_a_page_is_whole_and_lets_no_label_escape(made: tuple[Path, Any]) -> None:
    text = (made[0] / "page.html").read_text(encoding="utf-8")
    page = check(text)
    values = [value for name, value in page.attributes if name == "data-values"]
    assert "default-src 'none'" in text
    for label in ("<script>alert(1)</script>", "</style>&\"'", "\U0001f600 $5$", "x" * 200):
        assert any(label in cell for cell in page.texts["bdi"])
        assert any(label in json.dumps(json.loads(value), ensure_ascii=False).replace('\\"', '"') for value in values)
    assert "\u202e" not in text
    assert not any("\u202e" in json.dumps(json.loads(value), ensure_ascii=False) for value in values)
    assert any("\\u202e" in cell for cell in page.texts["bdi"])


def test_the_same_choices_give_the_same_page(made: tuple[Path, Any]) -> None:
    assert (made[0] / "page.html").read_bytes() == (made[0] / "again.html").read_bytes()


def test_a_page_says_what_there_is_to_say(made: tuple[Path, Any]) -> None:
    folder, content = made
    page = check((folder / "page.html").read_text(encoding="utf-8"))
    words = "\n".join(page.texts["p"]).replace("\xa0", " ")  # no line breaks before a percent sign
    assert page.texts["h2"] == [
        "What to do", "What you should know", "What changed over time", "Who gains when an item is gone",
        "Who the customers are", "Best offer", "How well it fits, and what is proven",
        "Data", "Offers",
    ]  # fmt: skip
    assert "402 records" in words
    assert "2 records were skipped" in words
    assert re.search(r"A better ranking model could remove at most \d+ % of this distance \(proven\)", words)
    assert "Intervals come from 3 bootstrap refits" in words
    assert page.texts["p"][0] == "1 January 2024 to 17 January 2024 · 400 choices"
    assert "today's offer earns" in words
    assert re.search(r"Today's offer \(the most frequent, shown \d+ times; set yours with --present\): ", words)
    assert re.search(r"half of the choices \(cut at 2024-01-0[89]T..:00; 'rankstream drift --at' compares other", words)
    assert "An item is listed if it changed beyond what clearer changes (smaller p) explain." in words
    assert re.search(r"sells most: \d+\.\d % \[\d+\.\d, \d+\.\d\] of all customers", words)
    assert "is out of stock" in words
    assert f"Tastes changed: {HOSTILE[0]}" in words
    assert re.search(r"Shares? of (all choices|the most frequent offer) over time", (folder / "page.html").read_text())
    assert content["read"]["skipped"] == 2
    assert content["drift"]["items"][0]["item"] == HOSTILE[0]
    model = load_model(folder / "model.json")
    best = content["decision"]
    worth = model.predict([*best["offer"], "nothing"])
    assert sum(worth[item] * (1 + HOSTILE.index(item)) for item in best["offer"]) == pytest.approx(best["value"])
    rows = [cells for cells in page.texts["tr"] if cells.startswith("0")]
    assert len(best["by_size"]) == len(HOSTILE) + 1
    assert any(f"{100 * (best['by_size']['5'] - best['overestimate']):.4g}" in row for row in page.texts["tr"]), rows


def test_colours_follow_the_reader(made: tuple[Path, Any]) -> None:
    text = (made[0] / "page.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert "var(--series-1)" in text


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    rows = ["offered,chosen,count", "tea;pie;no,tea,60", "tea;pie;no,no,40", "tea;no,tea,30", "tea;no,no,20"]
    (tmp_path / "choices.csv").write_text("\n".join(rows) + "\n")
    assert run("fit", "choices.csv", "-o", "model.json", "--method", "mnl", cwd=tmp_path).returncode == 0
    done = run("report", "model.json", "--data", "choices.csv", "--no-intervals", cwd=tmp_path)
    assert "Add --margins" in done.stdout
    assert "What customers choose: choices.csv" in (tmp_path / "report.html").read_text()
    page = check((tmp_path / "report.html").read_text())
    words = "\n".join(page.texts["p"])
    for remedy in ("These choices have no times", "turned off by --no-intervals", "Add margins"):
        assert remedy in words
    assert "Nothing was skipped" in words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--margins", "none.csv"], "There is no file none.csv"),
        (["-o", "choices.csv"], "--out is choices.csv, which is also choices.csv"),
        (["-o", "."], "is a folder: give a file name for the report"),
        (["-o", "away/page.html"], "The folder away does not exist"),
        (["--data", "other.csv"], "never offers 'tea'"),
    ],
)
def test_bad_input_leaves_what_was_there(tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "choices.csv").write_text("offered,chosen,count\ntea;no,tea,30\ntea;no,no,20\n")
    (tmp_path / "other.csv").write_text("offered,chosen,count\npie;no,pie,30\npie;no,no,20\n")
    RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.6, 0.4], no_choice_code=1).save(
        tmp_path / "model.json"
    )
    (tmp_path / "report.html").write_text("before")
    data = [] if "--data" in words else ["--data", "choices.csv"]
    done = run("report", "model.json", *data, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "report.html").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow
def test_prices_have_a_section(tmp_path: Path) -> None:
    rows = ["offered,chosen,count"]
    for price, taken in ((3, 60), (4, 40), (5, 20)):
        rows += [f"tea@{price};pie@2;no,tea,{taken}", f"tea@{price};pie@2;no,pie,20", f"tea@{price};pie@2;no,no,30"]
    (tmp_path / "choices.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "items.csv").write_text("item,unit_cost\ntea,1\npie,1\n")
    words = ("fit", "choices.csv", "-o", "model.json", "--price-columns", "offered", "--no-choice", "no")
    fitted = run(*words, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    done = run(
        "report", "model.json", "--data", "choices.csv", "--margins", "items.csv", "--replicates", "3",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = check((tmp_path / "report.html").read_text())
    assert "What prices do" in page.texts["h2"]
    assert {"3.00", "4.00", "5.00"} <= set(page.texts["bdi"])


@pytest.mark.slow
def test_many_items_and_offers_stay_small() -> None:
    random = np.random.default_rng(1)
    items = [f"item {number}" for number in range(300)]
    offers = [[*(items[place] for place in random.permutation(300)[:6].tolist()), "no"] for _ in range(600)]
    counts = ChoiceCounts(Assortments(offers, [*items, "no"]), random.integers(0, 9, 600 * 7))
    model = estimate(counts, method="mnl").model
    sections = [fit_section(model, counts), substitution_section(model.substitution(None, items[:30]))]
    page = check(Report("many", "", "many", tuple(sections), {}).html)
    words = "\n".join(page.texts["p"])
    assert "214 most frequent offers" in words  # 1,500 pairs of an offer and one of its seven items
    assert "the 20 most chosen of 301 items" in words
    assert "These are the furthest 100 of 1,498." in words


def test_of_many_items_those_that_gain_are_named() -> None:
    items = [f"item {number}" for number in range(14)]
    moves = RankingModel(items, [items], [1.0]).substitution()
    page = check(Report("one", "", "one", (substitution_section(moves),), {}).html)
    assert [cell for cell in page.texts["td"] if "item" in cell] == 2 * ["item 1 100.0 %"]  # below each of two charts


@pytest.mark.slow
def test_a_report_needs_no_part_of_the_server() -> None:
    code = "import sys, rankstream.cli.report; from rankstream.reports import findings, make, sections; "
    code += "print(sorted({'fastapi', 'uvicorn', 'httpx', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_empty_section_and_a_table_without_rows() -> None:
    empty = Section("a", "A", (), (TableBlock("Nothing", ("item", "share"), []),))
    page = check(Report("<b>", "", "", (empty,), {}).html)
    assert page.texts["h1"] == ["<b>"]
    assert page.tags.count("tr") == 1


def test_names_from_right_to_left_turn_nothing_around(made: tuple[Path, Any]) -> None:
    text = (made[0] / "page.html").read_text(encoding="utf-8")
    name = HOSTILE[2].rstrip("\u202e")
    assert text.count(name) == text.count(f"\u2068{name}\u2069") > 5
    values = [value for attribute, value in check(text).attributes if attribute == "data-values"]
    assert any(f"\u2068{name}\u2069" in json.dumps(json.loads(value), ensure_ascii=False) for value in values)


@pytest.mark.slow
def test_all_markets_of_a_folder_share_one_page(tmp_path: Path) -> None:
    rows = ["store,offered,chosen,count"]
    for store, taken in (("Old Town", 60), ("Harbour", 20)):
        rows += [f"{store},tea;pie;no,tea,{taken}", f"{store},tea;pie;no,pie,30", f"{store},tea;pie;no,no,25"]
        rows += [f"{store},tea;no,tea,{taken}", f"{store},tea;no,no,40"]
    (tmp_path / "choices.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\n")
    fitted = run("fit", "choices.csv", "--by", "store", "--no-choice", "no", "-o", "shops", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    words = ("report", "shops", "--margins", "items.csv", "--title", "Two shops", "--json")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = check((tmp_path / "report.html").read_text())
    assert page.texts["h1"] == ["Two shops"]
    assert [text for text in page.texts["h2"] if text in ("Old Town", "Harbour")] == ["Harbour", "Old Town"]
    assert page.texts["h2"].count("What to do") == 2
    assert set(json.loads(done.stdout)["markets"]) == {"Old Town", "Harbour"}
    one = run(*words, "--market", "Old Town", cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    assert check((tmp_path / "report.html").read_text()).texts["h2"].count("What to do") == 1


@pytest.mark.slow
def test_advice_names_the_gain_and_how_sure_it_is() -> None:
    offers = Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "no")])
    counts = ChoiceCounts(offers, [500, 300, 200, 700, 300, 500, 500])
    page = report(estimate(counts).model, counts, margins={"tea": 1.0, "pie": 4.0}, present=("tea",))
    advice = page.sections[0]
    (table,) = advice.parts
    assert isinstance(table, TableBlock)
    kinds = {row[0]: row for row in table.rows}
    assert {"Swap", "Best offer"} <= set(kinds)
    assert kinds["Swap"][1] == "Offering pie instead of tea"
    decision = page.content["decision"]
    gain = decision["context"]["gain"]
    assert kinds["Best offer"][2] == Units().change(gain)
    assert "clear gain" in kinds["Best offer"][3]
    assert gain == pytest.approx(decision["expected"] - decision["context"]["present_value"])
    assert f"the best offer earns {100 * decision['expected']:.4g} per 100 customers [" in " ".join(advice.sentences)
    assert "Today's offer: tea." in advice.sentences
    assert "In brackets: 95 % intervals." in advice.sentences
    usual = report(estimate(counts).model, counts, margins={"tea": 1.0, "pie": 4.0}).sections[0]
    assert "Today's offer (the most frequent): tea, pie." in usual.sentences


def test_a_report_has_intervals_however_small_its_budget() -> None:
    """Five refits take place in any case; until they did, a large shop's report said "certainty not estimated"."""
    offers = Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "no")])
    counts = ChoiceCounts(offers, [50, 30, 20, 70, 30, 50, 50])
    model = estimate(counts, method="mnl").model
    for budget, refits in ((0.0, MIN_REPLICATES), (1e9, REPLICATES)):
        margins = {"tea": 1.0, "pie": 4.0}
        page = report(model, counts, margins=margins, present=("tea",), budget=budget)
        assert page.content["decision"]["context"]["refits"] == refits
        assert page.content["decision"]["interval"] is not None
        (table,) = page.sections[0].parts
        assert isinstance(table, TableBlock)
        assert not any("not estimated" in row[3] for row in table.rows)
    plain = report(model, counts, margins=margins, intervals="None were asked for.")
    assert not any("In brackets" in sentence for sentence in plain.sections[0].sentences)
    assert plain.content["decision"]["context"]["refits"] == 0


def test_findings_are_three_to_five_and_each_says_how_sure_it_is(made: tuple[Path, Any]) -> None:
    page = (made[0] / "page.html").read_text(encoding="utf-8")
    (part,) = [text for text in page.split("<h2")[1:] if "What you should know" in text]
    *findings, legend = re.findall(r"<p[^>]*>(.*?)</p>", part, flags=re.DOTALL)
    assert 3 <= len(findings) <= 5
    for sentence in findings:
        assert re.search(r"\d\xa0% \[\d+\.\d, \d+\.\d\]", sentence), sentence
    assert legend.startswith("Brackets are 95\xa0% intervals")


def test_advice_adds_drops_swaps_and_reprices() -> None:
    """Every kind of change to today's offer that pays has its word and its gain."""
    model = prices.make_model("rankings", (2, 2), True, False, 3)
    words = set()
    for present in ranked_offers(model, {"tea": 1.0, "pie": 1.0}, {}):
        found = best_offer(model, costs={"tea": 1.0, "pie": 1.0}, present=present[1])
        section = findings.advice_section(found, Units(currency="EUR"))
        for part in section.parts:
            assert isinstance(part, TableBlock)
            assert all(row[2].startswith("+") and row[2].endswith(" EUR") for row in part.rows)
            words |= {row[0] for row in part.rows}
            kept = [change for change in found.context.changes if change.gain > 0.0]  # type: ignore[union-attr]
            assert [row[0] for row in part.rows[-len(kept) :] if kept] == [
                {"add": "Add", "drop": "Drop", "swap": "Swap", "price": "Reprice"}[change.kind] for change in kept
            ]
    assert words == {"Best offer", "Add", "Drop", "Swap", "Reprice"}


def test_a_title_is_the_heading(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text("offered,chosen,count\ntea;no,tea,30\ntea;no,no,20\n")
    assert run("fit", "choices.csv", "--method", "mnl", cwd=tmp_path).returncode == 0
    words = ("report", "model.json", "--data", "choices.csv", "--title", "Tea & <more>")
    assert run(*words, cwd=tmp_path).returncode == 0
    assert check((tmp_path / "report.html").read_text()).texts["h1"] == ["Tea & <more>"]


def test_what_the_data_do_not_support_is_grey() -> None:
    moves = Substitution(("tea", "pie"), np.array([0.6, 0.4]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert not any("Grey" in sentence for sentence in substitution_section(moves).sentences)
    known = replace(moves, low=np.array([[0.0, 0.2], [0.0, 0.0]]), high=np.ones((2, 2)))
    section = substitution_section(known)
    assert any("Grey" in sentence for sentence in section.sentences)
    for chart in section.parts:
        assert isinstance(chart, Chart)
        assert [row["gains_intervals"] for row in chart.values] == [{"pie": [0.2, 1.0]}, {"tea": [0.0, 1.0]}]
    assert static("charts.js").count("isUnsure(") == 2


def test_all_values_of_a_report_are_per_100_customers_in_its_currency() -> None:
    offers = Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "no")])
    counts, margins = ChoiceCounts(offers, [500, 300, 200, 70, 30, 50, 50]), {"tea": 1.0, "pie": 4.0}
    page = report(estimate(counts, method="mnl").model, counts, margins=margins, currency="EUR")
    (offer,) = [section for section in page.sections if section.name == "offer"]
    value = page.content["decision"]["value"]
    assert offer.sentences[0].startswith("Proven best: by this model")  # the offer and its value are said at the top
    best, sizes = offer.parts[0], offer.parts[1]
    assert isinstance(best, TableBlock)
    assert isinstance(sizes, Chart)
    assert (best.heads[1], best.rows[0][1]) == ("value per 100 customers", f"{100 * value:.4g} EUR")
    assert sizes.table.heads[1] == best.heads[1]
    (advice,) = page.sections[0].parts
    assert isinstance(advice, TableBlock)
    assert advice.heads[2] == "gain per 100 customers"
    drawn = static("charts.js")
    assert "per 100 customers" in drawn
    assert "1,000 customers" not in drawn


def test_a_price_at_which_nobody_buys_is_no_fall() -> None:
    curves: dict[Any, dict[float, Any]] = {"tea": {2.0: 0.0, 3.0: 0.0}, "pie": {4.0: 0.5, 5.0: 0.25}}
    (sentence,) = findings._prices(curves)
    assert sentence.startswith("At 5.00 instead of 4.00, pie is bought by 25.0 % instead of 50.0 % of customers")


def test_only_models_of_rankings_have_a_number_of_them() -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "no")]), [6, 4, 5, 5])
    first = [proven(estimate(counts, method=method).model, "")[0] for method in ("mnl", "nearest")]
    assert first[0] == "A model of 2 items: a multinomial logit."
    assert first[1].endswith(" rankings.")


def test_a_demand_curve_has_the_ends_of_its_intervals() -> None:
    chart: Any = demand_section({"tea": {2.0: Share(0.5, 0.4, 0.6), 3.0: Share(0.2, 0.1, 0.3)}}).parts[0]
    first = {"item": "tea", "price": 2.0, "share": 0.5, "low": 0.4, "high": 0.6}
    assert chart.values["points"] == [first, {"item": "tea", "price": 3.0, "share": 0.2, "low": 0.1, "high": 0.3}]
    assert chart.values["drawn"] == ["tea"]
    plain: Any = demand_section({"tea": {2.0: 0.5, 3.0: 0.2}}).parts[0]
    assert plain.values["points"][0] == {"item": "tea", "price": 2.0, "share": 0.5}
