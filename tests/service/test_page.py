"""The pages of the service, without a browser: who may see them, what they show, and what no label can do to them."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from html_pages import HOSTILE, Page
from rankstream.service.limits import ServiceLimits
from rankstream.service.page.process import key_of
from rankstream.service.storage import tokens
from service_pages import FORM, ask, cafe, page_of
from serving import CAFE, Shop, drawn, shop
from waits import wait_for

__all__ = ["cafe"]


def test_markets_and_one_of_them(cafe: Shop) -> None:
    listed = page_of(cafe.http.request("GET", "/"))
    assert ("href", "/markets/cafe") in listed.attributes
    assert "144" in listed.texts["td"]
    answer = cafe.http.request("GET", "/markets/cafe")
    shown = page_of(answer)
    assert shown.texts["h2"] == [
        "What if", "What changed over time", "How well it fits, and what is proven", "Who the customers are",
        "Who gains when an item is gone", "Error, certificate and changes",
    ]  # fmt: skip
    assert shown.tags.count("svg") == shown.tags.count("details") == 5
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Encoding"] == "gzip"


def test_the_first_load_is_small(cafe: Shop) -> None:
    first = cafe.http.request("GET", "/markets/cafe")
    files = re.findall(r"(?:src|href)=\"(/static/[^\"]+)", first.text)
    assert len(files) == 2
    answers = [first, *(cafe.http.request("GET", file) for file in files)]
    assert all(answer.status_code == 200 for answer in answers)
    assert sum(int(answer.headers["Content-Length"]) for answer in answers) < 300_000
    assert cafe.http.request("GET", "/static/market.html").status_code == 404
    assert cafe.http.request("GET", "/markets/cafe", headers={"Accept-Encoding": ""}).text == first.text


def test_what_if_moves_the_shares(cafe: Shop) -> None:
    answer = ask(cafe, "cafe", on=[key_of("tea"), key_of("pie")], part="what-if")
    found = Page(answer.text)
    (shares,) = [one["shares"] for one in cafe.post("/cafe/predict", {"offers": [["tea", "pie", "nothing"]]}).json()[
        "predictions"
    ]]  # fmt: skip
    for item, share in shares.items():
        row = next(row for row in found.texts["tr"] if row.startswith(item))
        assert f"{100 * share:.1f} %" in row
    assert not any(row.startswith("cake") for row in found.texts["tr"])
    whole = page_of(ask(cafe, "cafe", on=[key_of("tea")]))
    ticked = re.findall(r"<input type=\"checkbox\"[^>]*", ask(cafe, "cafe", on=[key_of("tea")]).text)
    assert "What if" in whole.texts["h2"]
    assert sorted("checked" in text for text in ticked) == [False, False, True, True]  # nothing is always there


def test_a_form_of_another_site_is_refused(cafe: Shop) -> None:
    others = ("http://evil.example", "null", "", "http://localhost.evil.example", "http://localhost:81", "http://[")
    for origin in others:
        answer = cafe.http.request("POST", "/markets/cafe", content="on=x", headers=FORM | {"Origin": origin})
        assert "sent from another site" in Page(answer.text).texts["p"][0]
        assert answer.status_code == 403
    refused = cafe.http.request("POST", "/v1/markets/cafe/choices", content="a=b", headers=FORM)
    assert refused.status_code == 415  # the way for programs takes no forms
    assert cafe.http.request("POST", "/markets/cafe", content=b"on=%ff&\xff", headers=FORM).status_code == 400


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
        assert one.get("/cafe/certificate").status_code == 401  # a cookie is for pages alone
        out = one.http.request("POST", "/logout", content="", headers=FORM)
        assert (out.status_code, out.headers["Location"]) == (303, "/login")
        assert one.http.request("GET", "/").status_code == 303


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
        assert found.tags.count("meter") == number
        assert int(answer.headers["Content-Length"]) < 300_000
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
        assert int(answer.headers["Content-Length"]) < 300_000
        listed = page_of(one.http.request("GET", "/"))
        assert "5,000" in listed.texts["td"]
        ticked = [key_of(name) for name in names[:3]]
        wait_for(lambda: "take too long" in ask(one, "shop", "what-if", on=ticked).text)


def test_nothing_to_show_yet(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        odd = one.http.request("POST", "/login", content="token=%D9%A0%0A", headers=FORM)
        assert odd.status_code == 303  # there are no tokens, and so none is wrong
        assert "There is no market yet" in page_of(one.http.request("GET", "/")).texts["p"][0]
        assert page_of(one.http.request("GET", "/markets/cafe"), 404).texts["h1"] == ["This cannot be shown"]
        assert page_of(one.http.request("GET", "/markets/a%20b"), 404).texts["h1"] == ["This cannot be shown"]
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
        assert "Not enough choices yet: 4 before and 5 after" in "".join(page_of(answer).texts["p"])


def test_panels_are_drawn_once_for_a_model(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    cafe.http.request("GET", "/markets/cafe")
    monkeypatch.setattr(cafe.service.drawing, "ask", lambda _: pytest.fail("drawn again"))
    assert cafe.http.request("GET", "/markets/cafe", headers={"Rankstream-Part": "panels"}).status_code == 200
