"""A folder of markets at the shell: fitting, asking and deciding for all of them; other commands hand over to here."""

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import print_json, print_note, print_plain, progress
from rankstream.cli.asking import by_name, shown
from rankstream.cli.items import Items, read_items

if TYPE_CHECKING:
    from rankstream.cli.options import ReadingOptions
    from rankstream.estimation.many.results import Markets

MOST_SHOWN = 10


def refuse(what: str, given: dict[str, Any]) -> None:
    """Refuse options that mean nothing here, where any is given."""
    for option, value in given.items():
        if value not in (None, False):
            raise ValueError(f"{option} is not for {what}: leave it out.")


def fit_markets(
    data: Path,
    by: str,
    out: Path,
    method: str,
    seed: int,
    pool: bool,
    jobs: int,
    share: float | None,
    reading: "ReadingOptions",
    as_json: bool,
) -> None:
    """Estimate a model for every market, and say what became of them."""
    from rankstream.data.readers.opening import How
    from rankstream.estimation.many.run import estimate_many

    refuse("many markets", {"--rejects": reading.rejects, "--partitions": reading.partitions})
    refuse("many markets", {"--price-columns": reading.price_columns, "--price-levels": reading.price_levels})
    taken = {field.name for field in fields(How)}
    taken.discard("price_levels")
    options = {name: value for name, value in vars(reading).items() if name in taken} | {"outside_share": share}
    columns = [name.strip() for name in by.split(",")]
    try:
        markets = estimate_many(data, columns, method, jobs, out, pool, seed, on_error=reading.on_error, **options)
    except KeyboardInterrupt:
        print_note(f"What is done is in {out}: the same command goes on from there.")
        raise
    if as_json:
        print_json(describe(markets))
        return
    _print_fit(markets)


def describe(markets: "Markets") -> dict[str, Any]:
    """What became of all markets, as JSON."""
    rows = markets.rows
    return {
        "models": str(markets.folder),
        "by": list(markets.by),
        "markets": len(markets),
        "absent": sum(row.status == "absent" for row in rows),
        "choices": sum(row.choices or 0.0 for row in rows),
        "methods": dict(Counter(row.method for row in rows if row.method is not None)),
        "failed": [{"market": row.market, "error": row.error} for row in rows if row.status == "failed"],
    }


def _print_fit(markets: "Markets") -> None:
    content = describe(markets)
    by = ", ".join(markets.by)
    methods = ", ".join(f"{number:,} by {name}" for name, number in content["methods"].items())
    print_plain(f"{content['choices']:,.12g} choices; {len(markets):,} markets by {by}, {methods or 'none fitted'}.")
    for one in content["failed"][:MOST_SHOWN]:
        print_plain(f"Failed: {shown(one['market'])}: {shown(one['error'])}")
    more = len(content["failed"]) - MOST_SHOWN
    if more > 0:
        print_plain(f"{more:,} more failed: see the column error of index.parquet.")
    print_plain(f"Saved {content['models']}.")


def load_one(path: Path, market: str | None) -> Any:
    """The model in a file; or that of a market, where the path is a folder of markets."""
    from rankstream.models.files import load_model

    if not path.is_dir():
        if market is not None:
            raise ValueError(f"--market is for a folder of markets, and {path} is not one: leave it out.")
        return load_model(path)
    from rankstream.estimation.many.results import Markets

    markets = Markets.load(path)
    if market is None:
        first = next((row.market for row in markets.rows if row.file is not None), "York;tea")
        raise ValueError(f"{path} is a folder of {len(markets):,} markets: name one with --market, such as {first!r}.")
    return markets.model(market)


def decide_markets(path: Path, margins: Path, said: Any, budget: float, seed: int, as_json: bool) -> None:
    """The best offer of every market as one table; ``said`` makes constraints of the table of items and their names.

    The table of items covers those of all markets. What is said of an item concerns the markets that carry it; a market
    without an item that must be offered has a message in place of an offer.
    """
    from rankstream.estimation.many.results import Markets

    markets = Markets.load(path)
    names, nothing = dict[str, Any](), set[str]()
    for key in markets:
        model = markets.model(key)
        names |= by_name(model)
        nothing |= set() if model.no_choice is None else {str(model.no_choice)}
    if len(nothing) > 1:
        listed = ", ".join(map(repr, sorted(nothing)))
        raise ValueError(f"The markets call no choice differently ({listed}): decide them one by one by their files.")
    table = read_items(margins, names, next(iter(nothing), None))
    wanted = said(table, names) | {"no_choice": names[nothing.pop()] if nothing else None}
    rows = []
    with progress("looking for the best offers") as tell:
        for number, key in enumerate(markets):
            tell(f"{number:,} of {len(markets):,} markets", float(number), float(len(markets)))
            rows.append({"market": markets.row(key).market} | _decided(markets.model(key), table, wanted, budget, seed))
    if as_json:
        print_json(rows)
        return
    width = max([len("market"), *(len(shown(row["market"])) for row in rows)])
    print_plain(f"{'market':<{width}}  {'value':>10}  offer")
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.4g}"
        offer = ", ".join(map(shown, row["offer"])) if row["error"] is None else shown(row["error"])
        proven = "" if row["proven"] is not False else " (not proven best)"
        print_plain(f"{shown(row['market']):<{width}}  {value:>10}  {offer}{proven}")


def _decided(model: Any, table: Items, wanted: dict[str, Any], budget: float, seed: int) -> dict[str, Any]:
    from rankstream.decide.choosing import best_offer

    items = set(model.items)
    said = wanted | {"no_choice": wanted["no_choice"] if wanted["no_choice"] in items else None}
    for name in ("listing_costs", "space"):
        if said[name] is not None:
            said[name] = {item: value for item, value in said[name].items() if item in items}
    said["never"] = [item for item in said["never"] if item in items]
    said["excludes"] = [pair for pair in said["excludes"] if items.issuperset(pair)]
    lacking = [first for first, second in said["requires"] if first in items and second not in items]
    said["never"] += [item for item in lacking if item not in said["never"]]
    said["requires"] = [pair for pair in said["requires"] if items.issuperset(pair)]
    margins = {item: margin for item, margin in table.margins.items() if item in items}
    try:
        found = best_offer(model, margins, budget=budget, seed=seed, **said)
    except ValueError as error:
        return {"offer": [], "value": None, "proven": None, "error": str(error)}
    return {"offer": list(map(str, found.offer)), "value": found.value, "proven": found.proven, "error": None}
