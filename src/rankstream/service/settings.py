"""Settings of a market: forgetting, change detection, prices, attributes, and the kind of model to publish."""

from collections.abc import Iterable
from typing import Any

from rankstream.data import Assortments, PriceLevels
from rankstream.data.decay import make_counts
from rankstream.data.readers.prices import checked_levels
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources.labels import text
from rankstream.service.limits import RefusedError
from rankstream.streams.live_settings import LiveSettings
from rankstream.streams.record import MAX_DETECTED_COUNT as LARGEST_COUNT
from rankstream.streams.record import Record

DEFAULTS: dict[str, Any] = {
    "half_life": None, "window": None, "detect": None, "threshold": None, "rounds": None, "served": "max-entropy",
    "seed": None, "no_choice": None, "price_levels": None, "attributes": None,
}  # fmt: skip
OWN = ("no_choice", "price_levels")
"""Settings that ``Live`` does not have, or has under another name: they say how records are read."""
PROBE = Assortments([("an item", "another")])


def checked(content: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """Return all settings with defaults for those not given; raise a RefusedError for what the schema does not catch.

    >>> checked({"half_life": "7d"})["half_life"], checked({})["served"]
    ('7d', 'max-entropy')
    """
    settings = {**DEFAULTS, **content}
    settings["seed"] = seed if settings["seed"] is None else settings["seed"]
    try:
        if settings["no_choice"] is not None:  # stripped, as the items of records are
            settings["no_choice"] = text(settings["no_choice"])
    except BadRecordError as error:
        raise RefusedError(422, f"no_choice is not the name of an item: {error}") from None
    if settings["no_choice"] == "":
        raise RefusedError(422, "no_choice must be a name or null.")
    try:
        if settings["price_levels"] is not None:
            settings["price_levels"] = as_json(settings["price_levels"])
        live = live_settings(settings)
        make_counts(PROBE, live.half_life, live.window)  # checks the half-life or window before the first record
    except (ValueError, TypeError, OverflowError) as error:
        raise RefusedError(422, f"These settings cannot be combined: {error}") from None
    return settings


def as_json(levels: Any) -> dict[str, list[float]]:
    """Return price levels as they are stored in the log: items as text, prices ascending.

    >>> as_json({" tea": [3.5, 3]})
    {'tea': [3.0, 3.5]}
    """
    checked_prices = checked_levels(PriceLevels(levels))
    assert isinstance(checked_prices, PriceLevels)
    return {str(item): list(prices) for item, prices in checked_prices.levels.items()}


def for_live(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Live``."""
    arguments = {name: value for name, value in settings.items() if name not in OWN}
    return arguments if settings.get("price_levels") is None else arguments | {"prices": settings["price_levels"]}


def live_settings(settings: dict[str, Any]) -> LiveSettings:
    """Return the settings as ``LiveSettings``, which can check records."""
    arguments = for_live(settings)
    return LiveSettings.of(publish=arguments.pop("served", "max-entropy"), **arguments)


def check_history(settings: dict[str, Any], untimed: int, uneven: int, large: int) -> None:
    """Raise a RefusedError if records in the log do not work with the settings."""
    live = live_settings(settings)
    problem = ""
    if live.timed and untimed:
        problem = f"{untimed:,} records of the market have no time: set the half-life or window in choices."
    elif (live.window is not None or (live.detect and not live.automatic)) and uneven:
        problem = f"{uneven:,} records of the market have counts that are not whole: set neither window nor detect."
    elif live.detect and not live.automatic and large:
        problem = f"{large:,} records of the market have counts above {LARGEST_COUNT:,}: leave detect out."
    if problem:
        raise RefusedError(409, problem)


def check_prices(settings: dict[str, Any], offers: Iterable[Any]) -> None:
    """Raise a RefusedError if offers in the log do not match the price levels."""
    live = live_settings(settings)
    for offered in offers:
        try:
            live.levels.of(Record(offered, next(iter(offered))))
        except ValueError as error:
            raise RefusedError(
                409, f"An offer of the market does not match these price levels: {error}. Use another market."
            ) from None
