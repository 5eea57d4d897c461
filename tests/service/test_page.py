"""The pages of the service, without a browser: who may see them, what they show, and what no label can do to them."""

import json
import re
from hashlib import sha256
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from threading import Event

import pytest

from html_pages import HOSTILE
from local_service import CAFE, Shop, drawn, shop
from rankstream.service.limits import ServiceLimits
from rankstream.service.page.market import Pages
from rankstream.service.processes.item_list import key_of
from rankstream.service.storage import log, tokens
from service_pages import FORM, ask, cafe, page_of
from waits import LONG, wait_for

__all__ = ["cafe"]
TABS = ["Overview", "What if", "Best offer", "Prices", "Changes", "Customers", "Data"]


def test_vendored_files_are_what_was_downloaded() -> None:
    folder = files("rankstream.reports") / "static" / "vendor"
    lines = [line.split() for line in (folder / "SHA256SUMS").read_text().splitlines()]
    assert [name for _, name in lines] == ["d3.min.js", "plot.umd.min.js"]
    for digest, name in lines:
        assert sha256((folder / name).read_bytes()).hexdigest() == digest
    for name in ("d3.LICENSE", "plot.LICENSE"):
        assert "Permission to use, copy, modify" in (folder / name).read_text()


def test_markets_and_one_of_them(cafe: Shop) -> None:
    listed = page_of(cafe.http.request("GET", "/"))
    assert ("href", "/markets/cafe") in listed.attributes
    assert "144" in listed.texts["td"]
    answer = cafe.http.request("GET", "/markets/cafe")
    shown = page_of(answer)
    assert [title for title in shown.texts["h2"] if title in TABS] == TABS
    assert shown.texts["nav"][0] == "".join(TABS)
    charts = [value for name, value in shown.attributes if name == "data-kind"]
    assert {"bars", "trend", "dots", "flows", "matrix", "course"} <= set(charts)
    chips = len(re.findall('<details class="chip', answer.text))
    assert shown.tags.count("details") == len(charts) + chips + 1  # the numbers of two periods
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Encoding"] == "gzip"


def test_every_chart_has_numbers_that_a_browser_can_read(cafe: Shop) -> None:
    shown = page_of(cafe.http.request("GET", "/markets/cafe"))
    values = [json.loads(value) for name, value in shown.attributes if name == "data-values"]
    observed = next(one for one in values if isinstance(one, list) and "name" in one[0])
    assert observed[0] == {"name": "tea", "share": pytest.approx(48 / 144, abs=1e-5)}


def test_everything_that_is_loaded_weighs_little(cafe: Shop) -> None:
    first = cafe.http.request("GET", "/markets/cafe")
    loaded = set(re.findall(r"(?:src|href)=\"(/static/[^\"]+)", first.text))
    waiting = [name for name in loaded if name.endswith(".js")]
    while waiting:
        name = waiting.pop()
        text = cafe.http.request("GET", name).text if "vendor" not in name else ""
        more = {f"{name.rpartition('/')[0]}/{part}" for part in re.findall(r"from \"\./([^\"]+)\"", text)}
        waiting += more - loaded
        loaded |= more
    answers = [first, *(cafe.http.request("GET", name) for name in loaded)]
    assert len(answers) == 12
    assert all(answer.status_code == 200 and answer.headers["Content-Encoding"] == "gzip" for answer in answers)
    assert sum(int(answer.headers["Content-Length"]) for answer in answers) < 400_000
    assert cafe.http.request("GET", "/static/x/market.html").status_code == 404
    whole = cafe.http.request("GET", next(iter(loaded)), headers={"Accept-Encoding": ""})
    assert "Content-Encoding" not in whole.headers


def test_the_page_is_there_before_anything_is_computed(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pages, "first_seconds", 0.01)
    begin = Event()
    with shop(cafe.folder) as other:  # another server, whose workers take for ever
        for worker in (other.service.quick, other.service.slow):
            monkeypatch.setattr(worker, "ask", lambda _: begin.wait(LONG) and (503, "too late"))
        answer = other.http.request("GET", "/markets/cafe")
        begin.set()
    shown = page_of(answer)
    assert "being computed" in "".join(shown.texts["p"])
    assert shown.tags.count("input") > 4
    assert "33.3 %" in "".join(shown.texts["td"])  # 48 of 144 chose tea
    assert ("http-equiv", "refresh") in shown.attributes  # where no script asks again


def test_an_address_says_what_is_asked(cafe: Shop) -> None:
    answer = cafe.http.request("GET", f"/markets/cafe?on={key_of('tea')}&on={key_of('pie')}")
    shown = page_of(answer)
    found = cafe.post("/cafe/predict", {"offers": [["tea", "pie", "nothing"]]}).json()["predictions"][0]["shares"]
    rows = dict(re.findall(r"<tr data-key=\"(\w+)\" data-item(.*?)</tr>", answer.text))
    assert len(rows) == 4
    for item, share in found.items():
        assert f"{100 * share:.1f} %" in rows[key_of(item)]
    cake = rows[key_of("cake")]
    assert 'class="off"' in cake
    assert "checked" not in cake
    assert shown.tags.count("noscript") == 2


def test_the_script_of_a_page_asks_with_its_cookie_from_its_own_site(cafe: Shop) -> None:
    question = {"offers": [["tea", "pie", "nothing"]]}
    own = ask(cafe, "cafe", "predict", question)
    program = cafe.post("/cafe/predict", question)
    assert own.json()["predictions"] == program.json()["predictions"]
    others = ("http://evil.example", "null", "", "http://localhost.evil.example", "http://localhost:81", "http://[")
    for origin in others:
        answer = ask(cafe, "cafe", "predict", question, Origin=origin)
        assert (answer.status_code, "sent from another site" in answer.text) == (403, True)
    for word in ("predict", "preferences"):
        assert cafe.http.request("POST", f"/page/cafe/{word}", content="a=b", headers=FORM).status_code == 415
    refused = cafe.http.request("POST", "/v1/markets/cafe/choices", content="a=b", headers=FORM)
    assert refused.status_code == 415  # the way for programs takes no forms
    assert cafe.http.request("POST", "/login", content=b"to=%ff&\xff", headers=FORM).status_code == 400


def test_log_in_and_out(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.send("bar", CAFE)
        token = tokens.create(tmp_path, ["cafe"], ["read"])
        away = one.http.request("GET", "/markets/cafe")
        assert (away.status_code, away.headers["Location"]) == (303, "/login?to=/markets/cafe")
        page_of(one.http.request("GET", "/login?to=/markets/cafe"))
        wrong = one.http.request("POST", "/login", content="token=rs_no_no", headers=FORM)
        assert "Unknown token" in page_of(wrong, 401).texts["p"][0]
        assert "Set-Cookie" not in wrong.headers
        assert one.http.request("POST", "/login", content=f"token={token}").status_code == 415
        assert one.http.request("POST", "/login", content="token=%D9%A0", headers=FORM).status_code == 401
        assert ask(one, "cafe", "predict", {"offers": [["tea"]]}).status_code == 401
        for to, then in (("/markets/cafe", "/markets/cafe"), ("//evil.example", "/"), ("https://evil.example", "/")):
            answer = one.http.request("POST", "/login", content=f"token={token}&to={to}", headers=FORM)
            assert (answer.status_code, answer.headers["Location"]) == (303, then)
        cookie = answer.headers["Set-Cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/", "max-age=43200"))
        assert "secure" not in cookie
        # the client keeps the cookie from here on
        listed = page_of(one.http.request("GET", "/"))
        assert ("href", "/markets/cafe") in listed.attributes
        assert ("href", "/markets/bar") not in listed.attributes
        assert one.http.request("GET", "/markets/bar").status_code == 403
        assert one.http.request("GET", "/page/bar/panels").status_code == 403
        kept = one.http.request(
            "PUT", "/page/cafe/preferences", json={"margins": {"tea": 1}}, headers={"Origin": "http://localhost"}
        )
        assert kept.status_code == 403  # this token may not manage
        assert one.get("/cafe/certificate").status_code == 401  # a cookie is for pages alone
        out = one.http.request("POST", "/logout", content="", headers=FORM)
        assert (out.status_code, out.headers["Location"]) == (303, "/login")
        assert one.http.request("GET", "/").status_code == 303


def test_the_server_remembers_what_was_told(tmp_path: Path) -> None:
    told = {"margins": {"tea": 1.5}, "shelf": ["tea", "nothing"], "currency": "EUR"}
    with shop(tmp_path) as one:
        one.send("cafe", CAFE)
        headers = {"Origin": "http://localhost"}
        assert one.http.request("GET", "/page/cafe/preferences").json() == {}
        kept = one.http.request("PUT", "/page/cafe/preferences", json=told, headers=headers)
        assert (kept.status_code, kept.json()) == (200, told)
        assert one.http.request("PUT", "/page/none/preferences", json=told, headers=headers).status_code == 404
        bad = one.http.request("PUT", "/page/cafe/preferences", json={"margins": {"tea": "x"}}, headers=headers)
        assert bad.status_code == 422
    with shop(tmp_path) as again:
        assert again.http.request("GET", "/page/cafe/preferences").json() == told


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"cafe": 7}', '{"cafe": {"currency": "EUR"}}'])
def test_preferences_of_an_older_version_are_taken_over(tmp_path: Path, text: str) -> None:
    (tmp_path / log.OLD_PREFERENCES).write_text(text)
    for _ in range(2):
        with shop(tmp_path) as again:
            told = again.http.request("GET", "/page/cafe/preferences").json()
        assert told == ({"currency": "EUR"} if "EUR" in text else {})
        assert not (tmp_path / log.OLD_PREFERENCES).exists()


@pytest.mark.parametrize("number", [1, 30, 300])
def test_any_number_of_items(tmp_path: Path, number: int) -> None:
    names = [*HOSTILE, *(f"item {place}" for place in range(number))][:number]
    with shop(tmp_path) as one:
        drawn(one)
        offers = [names[place : place + 6] for place in range(0, number, 5)]
        one.send("shop", [{"offered": offer, "chosen": offer[len(offer) // 2]} for offer in offers for _ in range(3)])
        one.settle("shop", served="sparse")
        one.learn()
        answer = one.http.request("GET", "/markets/shop")
        found = page_of(answer)
        assert len(re.findall(r"<tr data-key=\"\w+\" data-item", answer.text)) == number
        assert int(answer.headers["Content-Length"]) < 150_000
        if number > 1:
            assert any("<script>alert(1)</script>" in text for text in found.texts["bdi"])
            assert "\u202e" not in answer.text


@pytest.mark.slow
def test_five_thousand_offers(tmp_path: Path) -> None:
    names = [f"item {place}" for place in range(21)]
    offers = [[*offer, "nothing"] for offer in combinations(names, 4)][:5000]
    with shop(tmp_path, limits=ServiceLimits(offers=5000)) as one:
        drawn(one)
        assert (
            "different offers"
            not in one.send("shop", [{"offered": offer, "chosen": offer[0]} for offer in offers]).text
        )
        one.settle("shop", served="sparse", rounds=1)
        one.learn()
        answer = one.http.request("GET", "/markets/shop")
        assert "300 most frequent offers" in "".join(page_of(answer).texts["p"])
        assert int(answer.headers["Content-Length"]) < 150_000
        listed = page_of(one.http.request("GET", "/"))
        assert "5,000" in listed.texts["td"]
        question = {"offers": [names[:3]], "interval": 0.95}
        wait_for(lambda: "take too long" in ask(one, "shop", "predict", question).json()["intervals"])


def test_nothing_to_show_yet(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        odd = one.http.request("POST", "/login", content="token=%D9%A0%0A", headers=FORM)
        assert odd.status_code == 303  # there are no tokens, and so none is wrong
        assert "There is no market yet" in page_of(one.http.request("GET", "/")).texts["p"][0]
        assert page_of(one.http.request("GET", "/markets/cafe"), 404).texts["h1"] == ["This page is not available"]
        assert page_of(one.http.request("GET", "/markets/a%20b"), 404).texts["h1"] == ["This page is not available"]
        one.send("cafe", CAFE)
        assert "still being built" in "".join(page_of(one.http.request("GET", "/markets/cafe")).texts["p"])


def test_two_hundred_markets_are_listed(tmp_path: Path) -> None:
    with shop(tmp_path, limits=ServiceLimits(markets=300)) as one:
        for number in range(200):
            assert one.send(f"market-{number}", CAFE[:2]).status_code == 202
        found = page_of(one.http.request("GET", "/"))
        assert found.tags.count("tr") == 201
        assert found.texts["td"].count("no model yet") == 200


def test_the_settings_say_what_is_always_on_offer(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", [{"offered": ["tea", "nothing"], "chosen": "tea"}] * 9)  # both are in every offer
        one.settle("cafe", served="sparse", no_choice="nothing")
        one.learn()
        answer = one.http.request("GET", "/markets/cafe")
        boxes = re.findall(r"<input type=\"checkbox\"[^>]*value=\"(\w+)\"[^>]* disabled", answer.text)
        assert boxes == [key_of("nothing")]
        answer_without = one.post("/cafe/predict", {"offers": [["tea"]]}).json()
        assert answer_without["predictions"][0]["added"] == ["nothing"]
        assert "Not enough choices yet: 4 before and 5 after" in "".join(page_of(answer).texts["p"])


def test_panels_are_made_once_for_a_model(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    cafe.http.request("GET", "/markets/cafe")
    monkeypatch.setattr(cafe.service.slow, "ask", lambda _: pytest.fail("made again"))
    assert set(cafe.http.request("GET", "/page/cafe/panels").json()["tabs"]) == {
        "overview", "prices", "changes", "customers", "data",
    }  # fmt: skip


def test_a_coarse_model_is_provisional_here_and_in_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.settle("cafe", served="sparse")
        one.learn()
        question = {"offers": [["tea", "pie"]]}

        def said() -> tuple[bool, bool, bool]:
            content = one.post("/cafe/predict", question).json()
            page = one.http.request("GET", "/markets/cafe").text
            return content["provisional"], content["model"]["provisional"], "coarse model" in page

        assert said() == (False, False, False)  # it was asked for
        row = one.service.row("cafe")
        settings = row.settings | {"served": "max-entropy"}  # as before the better model is there
        monkeypatch.setattr(one.service, "row", lambda _: row._replace(settings=settings))
        assert said() == (True, True, True)


def test_downloads(cafe: Shop) -> None:
    lines = [json.loads(line) for line in cafe.http.request("GET", "/page/cafe/counts").text.splitlines()]
    assert {"offered": ["tea", "pie", "nothing"], "chosen": "tea", "count": 48.0} in lines
    assert sum(line["count"] for line in lines) == 144
    assert lines == [json.loads(line) for line in cafe.get("/cafe/counts").text.splitlines()]
    assert cafe.http.request("GET", "/page/cafe/model").json() == cafe.get("/cafe/model").json()
    report = cafe.http.request("GET", "/page/cafe/report")
    assert report.headers["Content-Disposition"].startswith("attachment")
    assert "What customers choose: cafe" in report.text
