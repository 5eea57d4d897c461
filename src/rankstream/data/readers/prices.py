"""Records with prices: the price of each offered item, and price levels once all records are read."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankstream._core.arguments import whole_number
from rankstream.data.prices import MOST_LEVELS, PriceLevels, check_price
from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.records import Choices, flag
from rankstream.data.readers.results import COUNTED, Tally, new_tally
from rankstream.data.readers.sources.labels import parts_of, text
from rankstream.data.readers.sources.lines import Twice, loads

AT = "@"
OCCURRING = "occurring"
PRICE_DECIMALS = 6  # decimals that prices are read with, so that a column of short floats says what a text says
MAX_QUANTILE_PRICES = 100_000  # prices of an item that quantiles are taken of; beyond, in proportion: bounds memory
Levels = PriceLevels | str | int


def checked_levels(levels: Any) -> Levels:
    """Check the option ``price_levels`` of ``read``: levels, "occurring", or a number of quantiles."""
    if isinstance(levels, PriceLevels):
        names = {item: text(item) for item in levels.items}
        return PriceLevels(
            {names[item]: prices for item, prices in levels.levels.items()},
            {names[item]: ends for item, ends in levels.bins.items()},
        )
    if isinstance(levels, str):
        if levels != OCCURRING:
            raise ValueError(f"price_levels is {levels!r}: give a PriceLevels, {OCCURRING!r}, or a number of levels.")
        return levels
    return whole_number("price_levels", levels, least=1)


def plain_cell(cell: Any) -> Any:
    """Return a cell unchanged."""
    return cell


@dataclass
class PricedChoices(Choices):
    """Parser of records with prices: an entry of an offer is (item, price), or the item if it has no price.

    With ``levels``, each price is replaced by its level. The items ``required`` must have a price in every record.
    ``number`` rewrites prices within offers, such as those with decimal commas.
    """

    levels: PriceLevels | None = None
    required: frozenset[str] = frozenset()
    number: Callable[[Any], Any] = plain_cell

    def __post_init__(self) -> None:
        form = "long" if self.layout.format == "long" else "transactions"
        layout = replace(self.layout, format=form, always=None, by_id=False)
        self._names = Choices(layout, self.separator, self.items, self.no_choice)

    def outcome(self, raw: Sequence[Any]) -> Any:
        """Return the offer and the choice with their prices, or raise a BadRecordError."""
        if self.layout.format == "long":
            alternatives, naming = raw
            pairs = [(text(item), cell) for item, _, cell in alternatives]
            plain: tuple[Any, Any] = ([(item, cell) for item, cell, _ in alternatives], naming)
        elif self.layout.format == "wide":
            pairs = self._available(raw)
            chosen = text(raw[0])
            plain = ([name for name, _ in pairs], self.layout.codes.get(chosen, chosen))
        else:
            pairs = [(name, self.number(cell)) for name, cell in pairs_in(self._value(raw[0]), self.separator)]
            plain = ([name for name, _ in pairs], self._named(raw[-1], dict(pairs)))
        cells = _unique_prices(pairs)
        offer, chosen = self._names.outcome(plain)
        entries = {name: self._entry(name, cells.get(name)) for name in offer}
        return tuple(entries.values()), entries[chosen]

    def _value(self, cell: Any) -> Any:
        if self.contents is not None:
            return self._held(text(cell), self.contents)
        return cell if self.layout.always is None else self.layout.always

    def _named(self, cell: Any, cells: Mapping[str, Any]) -> str:
        chosen = text(cell)
        name, price = _split(chosen)
        if chosen not in cells and name in cells and price_in(name, self.number(price)) == price_in(name, cells[name]):
            return name
        return chosen

    def _available(self, raw: Sequence[Any]) -> list[tuple[str, Any]]:
        """Return the available items of a wide table: those with a 1, and those with a price and no column of flags."""
        names, priced = self.layout.items, self.layout.priced
        prices = dict(zip(priced, raw[1 + len(names) :], strict=True))
        flags = zip(names, raw[1 : 1 + len(names)], strict=True)
        flagged = [(name, prices.get(name)) for name, cell in flags if flag(cell, "availability", name)]
        return flagged + [(name, cell) for name, cell in prices.items() if name not in names and text(cell) != ""]

    def _entry(self, name: str, cell: Any) -> Any:
        price = price_in(name, cell)
        try:
            if name == self.no_choice:
                if price:
                    raise ValueError(f"The price of {name!r} is {price:g}, but it means buying nothing: remove it.")
                return name
            if price is None and name not in self.required and (not self.levels or name not in self.levels.levels):
                return name
            return name, check_price(name, price) if self.levels is None else self.levels.level(name, price)
        except ValueError as error:
            raise _bad(error) from None


def price_in(name: str, cell: Any) -> float | None:
    """Return the price in a cell; None if it is empty."""
    words = text(cell)
    if words == "":
        return None
    try:
        price: Any = float(words)
    except ValueError:
        price = cell
    try:
        return round(check_price(name, price), PRICE_DECIMALS) + 0.0
    except ValueError as error:
        raise _bad(error) from None


def _bad(error: ValueError) -> BadRecordError:
    words = str(error)
    return BadRecordError("price", words[0].lower() + words[1:])


def pairs_in(value: Any, separator: str) -> list[tuple[str, Any]]:
    """Return the items of an offer with their prices, from a mapping or from names such as ``tea@3.50``.

    >>> pairs_in("tea@3.50;cake @ 4;nothing", ";"), pairs_in({"tea": 3.5, "nothing": None}, ";")
    ([('tea', '3.50'), ('cake', '4'), ('nothing', None)], [('tea', 3.5), ('nothing', None)])
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = loads(value)
        except (ValueError, RecursionError):
            raise BadRecordError("malformed", f"the offer {shown(value)} is not JSON: correct it.") from None
    if isinstance(value, Twice):
        raise BadRecordError("price", f"the offer {shown(dict(value))} gives one item two prices: give one.")
    if isinstance(value, dict):
        return [(text(item), price) for item, price in value.items()]
    return [_split(text(part)) for part in parts_of(value, separator)]


def _split(label: str) -> tuple[str, Any]:
    name, at, price = label.rpartition(AT)
    return (name.strip(), price.strip()) if at else (label, None)


def _unique_prices(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, cell in pairs:
        first, second = price_in(name, cells.get(name)), price_in(name, cell)
        if name in cells and first != second:
            raise BadRecordError(
                "price", f"the offer has two prices of {name!r}, {first} and {second}: give one, or make two offers."
            )
        cells[name] = cell
    return cells


def in_both_ways(tally: Tally) -> frozenset[str]:
    """Return all items with a price if any of them lacks it in some records; else an empty set."""
    entries = {entry for outcomes in tally.values() for offer, _ in outcomes for entry in offer}
    priced = frozenset(entry[0] for entry in entries if isinstance(entry, tuple))
    return priced if any(entry in priced for entry in entries if isinstance(entry, str)) else frozenset()


def settled(name: str, tally: Tally, levels: Levels) -> tuple[Tally, PriceLevels]:
    """Replace items at prices by labels of items at levels; return the new tally and the levels."""
    seen = seen_prices(outcomes for (kind, *_), outcomes in tally.items() if kind == COUNTED)
    if not seen:
        raise ValueError(f"{name} has no record with a price: leave prices out, or write them as numbers.")
    known = levels if isinstance(levels, PriceLevels) else _levels(name, seen, levels)
    label = {entry: known.label(*entry) for entry in ((item, price) for item in seen for price in seen[item])}
    labelled = new_tally()
    for key, outcomes in tally.items():
        for (offer, chosen), weight in outcomes.items():
            labelled[key][tuple(label.get(entry, entry) for entry in offer), label.get(chosen, chosen)] += weight
    return labelled, known


def seen_prices(tallies: Iterable[Mapping[Any, float]]) -> dict[str, dict[float, float]]:
    """Return how often each item was offered at each price."""
    seen: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for outcomes in tallies:
        for (offer, _), weight in outcomes.items():
            for entry in offer:
                if isinstance(entry, tuple):
                    seen[entry[0]][entry[1]] += weight
    return seen


def market_levels(seen: Mapping[str, Mapping[float, float]], wanted: Levels, strict: bool = True) -> PriceLevels:
    """Return the levels of one market: the wanted ones of its items, or at most as many as it has prices.

    If one level for each price would be too many, there are fewer, or with ``strict`` a ValueError.
    """
    if isinstance(wanted, PriceLevels):
        of_items = {item: wanted.levels[item] for item in sorted(seen)}
        return PriceLevels(of_items, {item: ends for item, ends in wanted.bins.items() if item in of_items})
    if isinstance(wanted, str) and (strict or max(map(len, seen.values())) <= MOST_LEVELS):
        return _levels("The market", seen, wanted)
    limit = MOST_LEVELS if isinstance(wanted, str) else wanted
    levels, bins = dict[Any, Sequence[float]](), dict[Any, Sequence[float]]()
    for item, prices in sorted(seen.items()):
        of_item = PriceLevels.quantiles({item: _repeated(prices)}, min(limit, len(prices)))
        levels |= of_item.levels
        bins |= of_item.bins
    return PriceLevels(levels, bins)


def _levels(name: str, seen: Mapping[str, Mapping[float, float]], levels: str | int) -> PriceLevels:
    if isinstance(levels, str):
        for item, prices in sorted(seen.items()):
            if len(prices) > MOST_LEVELS:
                raise ValueError(
                    f"{name} has {item!r} at {len(prices):,} prices, more than {MOST_LEVELS} levels: group them "
                    "into fewer, such as price_levels=3, with about as many offers in each."
                )
        return PriceLevels.occurring({item: sorted(seen[item]) for item in sorted(seen)})
    return PriceLevels.quantiles({item: _repeated(seen[item]) for item in sorted(seen)}, levels)


def _repeated(prices: Mapping[float, float]) -> list[float]:
    """Return each price as often as it was offered, scaled down beyond a limit, and at least once."""
    part = min(1.0, MAX_QUANTILE_PRICES / max(1.0, sum(prices.values())))
    return [price for price, weight in sorted(prices.items()) for _ in range(max(1, round(weight * part)))]
