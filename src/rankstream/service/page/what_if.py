"""What if: the shares of an offer that somebody ticks, at prices, beside everything; the best and the next offer."""

from dataclasses import dataclass, field
from typing import Any

from rankstream.reports.blocks import percent
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import Pages
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.states import PublishedModel

BUDGET = 2.0
"""Seconds for the search of an offer."""
KINDS = {"best": "decide", "next": "next_offer"}
"""What a button asks, and the question behind it; every other only predicts."""

WAYS = {"all": "all items", "ticked": "ticked items only", "more": "all; ticked ones stay"}
"""What ticks mean to the search of an offer: nothing, the only items there are, or items that stay."""


@dataclass
class WhatIf:
    """A filled form and its answer; ``at`` says which of its price levels each item is at."""

    items: list[dict[str, Any]]
    ticked: set[str]
    at: dict[str, int]
    margins: dict[str, str] = field(default_factory=dict)
    at_most: str = ""
    at_least: str = ""
    among: str = "all"
    ways: dict[str, str] = field(default_factory=lambda: WAYS)
    rows: list[dict[str, Any]] = field(default_factory=list)
    intervals: str = ""
    sentences: list[str] = field(default_factory=list)

    @property
    def has_prices(self) -> bool:
        """Whether an item can be had at several prices, or at one."""
        return any(item["prices"] for item in self.items)

    def label(self, item: dict[str, Any]) -> str:
        """An item as the model knows it, at the price that it has here."""
        found: str = item["levels"][self.at[item["key"]]]
        return found


async def what_if(
    pages: Pages,
    row: MarketRow,
    published: PublishedModel,
    items: list[dict[str, Any]],
    form: list[tuple[str, str]] | None,
) -> WhatIf:
    """The answer to a form; without one, everything is ticked."""
    asked = _filled(items, form)
    ask = "shares" if form is None else next((value for name, value in form if name == "ask"), "shares")
    try:
        if ask in KINDS:
            await _decide(pages, row, published, asked, ask)
        await _predict(pages, row, published, asked)
    except RefusedError as refused:
        asked.sentences.append(refused.sentence)
    return asked


def _filled(items: list[dict[str, Any]], form: list[tuple[str, str]] | None) -> WhatIf:
    keys, middle = {item["key"] for item in items}, {item["key"]: item["level"] for item in items}
    if form is None:
        return WhatIf(items, keys, middle)
    ticked = {value for name, value in form if name == "on" and value in keys}
    ticked |= {item["key"] for item in items if item["always"]}
    given = dict(form)
    margins = {key: given[f"margin-{key}"].strip()[:20] for key in keys if given.get(f"margin-{key}", "").strip()}
    at = {item["key"]: _level(item, given.get(f"price-{item['key']}", "")) for item in items}
    most, least = (given.get(name, "").strip()[:6] for name in ("at_most", "at_least"))
    among = given.get("among", "all")
    return WhatIf(items, ticked, at, margins, most, least, among if among in WAYS else "all")


def _level(item: dict[str, Any], text: str) -> int:
    """Which price level was chosen; the usual one where none was, or one that is gone."""
    place = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
    return place if 0 <= place < len(item["levels"]) else int(item["level"])


async def _predict(pages: Pages, row: MarketRow, published: PublishedModel, asked: WhatIf) -> None:
    """Predicted shares of what is ticked, beside those of everything."""
    offer = [item for item in asked.items if item["key"] in asked.ticked]
    if not offer:
        raise RefusedError(422, "Nothing is ticked: tick what is on offer.")
    names = [asked.label(item) for item in offer]
    offers = [tuple(name.strip() for name in names)]
    (predicted,) = await pages.service.predict(row, published, offers)
    found, asked.intervals = await pages.intervals.of(row, published, offers)
    shares, ends = predicted["shares"], found[0] if found else {}
    for item, name in zip(offer, names, strict=True):
        share = shares[name]
        asked.rows.append(
            {
                "label": name,
                "share": share,
                "text": percent(share),
                "interval": f"{100 * ends[name][0]:.1f} to {100 * ends[name][1]:.1f} %"
                if name in ends
                else "not yet" if asked.intervals == "not yet" else "",
                "change": f"{100 * (share - item['share']):+.1f}",
            }
        )  # fmt: skip
    asked.rows.sort(key=lambda one: -one["share"])


async def _decide(pages: Pages, row: MarketRow, published: PublishedModel, asked: WhatIf, ask: str) -> None:
    """The best offer, or the next one to try, of items whose margins are given; it is then what is ticked."""
    free = {item["key"]: item for item in asked.items if not item["always"]}
    given = {key: _number(free[key]["label"], text) for key, text in asked.margins.items() if key in free}
    if not given:
        what = "No item has a cost or a margin: say what a sale of each costs, or earns if it has no price."
        raise RefusedError(422, what if asked.has_prices else "No item has a margin: say what a sale of each earns.")
    must = [item["label"] for key, item in free.items() if asked.among == "more" and key in asked.ticked]
    away = [item["label"] for key, item in free.items() if asked.among == "ticked" and key not in asked.ticked]
    without = [item["label"] for key, item in free.items() if key not in given and item["label"] not in must]
    nothing = next((item["label"] for item in asked.items if item["always"]), None)
    said: dict[str, Any] = {
        "margins": {item["label"]: given.get(key, 0.0) for key, item in free.items() if not item["prices"]}
        | ({} if nothing is None else {nothing: 0.0}),
        "never": list(dict.fromkeys([*without, *away])), "must": must,
        "no_choice": nothing, "budget": BUDGET,
        "at_most": _whole("At most", asked.at_most), "at_least": _whole("At least", asked.at_least),
    }  # fmt: skip
    if asked.has_prices:
        said["costs"] = {item["label"]: given.get(key, 0.0) for key, item in free.items() if item["prices"]}
    question = {"kind": KINDS[ask], "market": row.id, "digest": published.digest, "constraints": said}
    found = await pages.service.ask(pages.service.slow, question)
    decision = found if ask == "best" else found.get("decision") or {}
    what = "The best offer" if ask == "best" else "The next offer to try"
    asked.sentences.append(f"{what}: {', '.join(found['offer']) or 'nothing'}.")
    if "value" in decision:
        sure = "no feasible offer is worth more, proven" if decision["proven"] else "not proven to be the best"
        asked.sentences.append(f"It is worth {decision['value']:.4g} per customer by the model; {sure}.")
    if without:
        what = "a cost or a margin" if asked.has_prices else "a margin"
        gone = "1 item without {} was" if len(without) == 1 else f"{len(without):,} items without {{}} were"
        asked.sentences.append(f"{gone.format(what)} left out.")
    asked.ticked = {item["key"] for item in asked.items if item["always"]}
    for item in asked.items:
        for place, label in enumerate(item["levels"]):
            if label in found["offer"]:
                asked.ticked.add(item["key"])
                asked.at[item["key"]] = place


def _whole(name: str, text: str) -> int | None:
    """How many items there must be, or None where nothing is written."""
    if text and not (text.isascii() and text.isdecimal()):
        raise RefusedError(422, f"{name} is {text!r}: write a whole number of items, or nothing.")
    return int(text) if text else None


def _number(label: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -1e12 < value < 1e12:
        raise RefusedError(422, f"The margin or cost of {label!r} is {text!r}: write a number, such as 1.5.")
    return value
