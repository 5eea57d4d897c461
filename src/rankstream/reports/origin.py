"""Where a model comes from, and what its predictions rest on, in sentences; a file may say anything or nothing."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import plural, shown
from rankstream.models.files import kind_of, words_of
from rankstream.models.fit_warnings import fit_warnings, noted
from rankstream.reports.blocks import brief

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers.reading import Reading
    from rankstream.models.files import Model

MIN_DATE = 1e8  # seconds since 1970 from which on numbers are taken for times: smaller ones may be anything
DISTANCE = "root of the summed squared errors"  # in shares, each offer weighted by how often it was shown


def origin_lines(about: dict[str, Any]) -> list[str]:
    """Data, reading, method and certificate, as far as the model remembers them."""
    lines = [_data(about), _reading(about), _method(about), _certificate(about)]
    lines += [shown(line) for name in ("contradiction", "uncertain") if isinstance(line := about.get(name), str)]
    return [line for line in lines if line]


def warning_lines(about: dict[str, Any]) -> list[str]:
    """What every answer of a model should warn about, a line for each."""
    return [f"Warning: {shown(warning)}" for warning in fit_warnings(about)]


def prediction_lines(about: dict[str, Any]) -> list[str]:
    """What a model by maximum entropy predicts with where its choices say nothing, and how that was decided."""
    found, key = noted(about, "prediction"), "held_out_log_likelihood"  # held_out_nats in files of 0.3
    weights, scores = _numbers(found.get("weights")), _numbers(found.get(key, found.get("held_out_nats")))
    lines: list[str] = []
    if weights and scores:
        parts = sorted(weights.items(), key=lambda pair: -pair[1])
        named = "; ".join(shown(name) + f" (weight {100 * weight:.0f} %)" * (len(parts) > 1) for name, weight in parts)
        mix = "a mix of simpler models, weighted" if len(parts) > 1 else "a simpler model, chosen"
        lines.append(f"Predictions for unseen offers start from {mix} by accuracy on held-out offers: {named}.")
    elif weights:
        several = f"{len(weights)} simpler models such as" if len(weights) > 1 else "a simpler model,"
        on = f"{several} {shown(next(iter(weights)))}"
        lines.append(f"With so few offers in the data, predictions for unseen offers start from {on}.")
    if found.get("approximate") is True:
        lines.append("There are too many offers for an exact fit, so rankings were sampled.")
    lines = [re.sub(r"(\d+) classes", r"latent-class logit with \1 classes", line) for line in lines]
    return [line.replace(", light", ", lightly regularised") for line in lines]


def _data(about: dict[str, Any]) -> str:
    data, choices, times = noted(about, "data"), about.get("choices"), about.get("times")
    where = shown(data["file"]) if isinstance(data.get("file"), str) else ""
    where = where or ", ".join(f"{shown(column)} {shown(value)!r}" for column, value in noted(about, "market").items())
    if not where:
        return ""
    number = f"{plural(choices, 'choice')} in " if isinstance(choices, int | float) else ""
    span = f", {shown(times[0])} to {shown(times[1])}" if isinstance(times, list) and len(times) == 2 else ""
    digest = data.get("digest")
    known = f" (digest {shown(digest)[:12]})" if isinstance(digest, str) else ""
    return f"Fitted to {number}{where}{span}{known}."


def _reading(about: dict[str, Any]) -> str:
    given = {name: value for name, value in noted(about, "reading").items() if value is not None}
    options = " ".join(f"--{shown(name).replace('_', '-')} {shown(value)}" for name, value in given.items())
    return f"Read with {options}." if options else ""


def _method(about: dict[str, Any]) -> str:
    method, seed, version = (about.get(name) for name in ("method", "seed", "version"))
    if not isinstance(method, str):
        return ""
    parts = [f"by {shown(method)}", *([] if seed is None else [f"seed {shown(seed)}"])]
    parts += [] if version is None else [f"with rankstream {shown(version)}"]
    return f"Fitted {', '.join(parts)}."


def _certificate(about: dict[str, Any]) -> str:
    found = noted(about, "certificate")
    numbers = _numbers(found)
    if not {"distance", "proven_least_distance", "gap"} <= set(numbers):
        return ""
    cut = "; the fit stopped early" if found.get("cut_short") is True else ""
    norm = shown(found["norm"]) if isinstance(found.get("norm"), str) else DISTANCE
    noise = f"; sampling noise alone: {numbers['noise_distance']:.4f}" if "noise_distance" in numbers else ""
    words = certificate_words(numbers["distance"], numbers["proven_least_distance"], numbers["gap"], norm + noise)
    return f"{words}{cut}."


def certificate_words(distance: float, proven: float, gap: float, norm: str = DISTANCE) -> str:
    """The three numbers of a certificate in words; the first less the second is the third.

    >>> print(certificate_words(0.0312, 0.029, 0.0022))
    Distance from the observed shares 0.0312 (root of the summed squared errors). No ranking model can be closer than
    0.0290 (proven), so at most 0.0022 could still be gained
    """
    return (
        f"Distance from the observed shares {distance:z.4f} ({norm}). No ranking model can be closer "
        f"than {proven:z.4f} (proven), so at most {gap:z.4f} could still be gained"
    )


def _numbers(found: Any) -> dict[str, float]:
    if not isinstance(found, dict):
        return {}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def items_in(whole: Any) -> str:
    """How many items a model has, each counted once, whatever its prices, without the no-purchase option."""
    from rankstream.models.prices import levels_of, own_items

    items, at = (whole.items, "") if levels_of(whole) is None else (own_items(whole), " at price levels")
    return f"{plural(len(items) - (whole.no_choice in items), 'item')}{at}"


def period_of(times: tuple[float, float] | None) -> str:
    """Return the first and the last day of some times; nothing where they are no dates.

    >>> period_of((1772438400.0, 1788100000.0)), period_of((3.0, 17.0))
    ('2 March 2026 to 30 August 2026', '')
    """
    if times is None or times[0] < MIN_DATE:
        return ""
    return " to ".join(f"{day.day} {day:%B %Y}" for day in (datetime.fromtimestamp(time, UTC) for time in times))


def account_of(reading: "Reading", counts: "ChoiceCounts") -> Iterator[str]:
    """Say what was read, in sentences."""
    from rankstream.data.prices import split_label  # loads numpy, which most commands do without

    offers, names = counts.assortments, {split_label(label)[0] for label in counts.assortments.items}
    kind = "offer" if offers.n_offers == 1 else "different offer"
    names -= set() if offers.no_choice_code is None else {offers.items[offers.no_choice_code]}
    read = f"{plural(counts.observations, 'choice')} from {plural(offers.n_offers, kind)}"
    yield f"{read} of {plural(len(names), 'item')}."
    yield f"The file has {plural(reading.rows, 'record')}.{'' if reading.problems.total else ' Nothing was skipped.'}"
    if reading.account is not None:
        yield reading.account.summary()
    if reading.groups:
        markets = [brief(" ".join(map(str, key if isinstance(key, tuple) else (key,)))) for key in reading.groups]
        yield f"{plural(len(markets), 'market')}: {', '.join(markets[:8])}{', …' if len(markets) > 8 else ''}."
    if period := period_of(reading.times):
        yield f"From {period}."
    if reading.prices is not None:
        yield f"Prices of {plural(len(reading.prices.levels), 'item')}."
    yield from filter(None, (*reading.notes, reading.problems.summary()))


def remainder(distance: float, least: float) -> str:
    """Return which part of a distance from the data another ranking model could remove, in plain words."""
    if distance <= 1e-9:
        return "The model fits the observed shares exactly."
    part = 100 * (1.0 - max(0.0, min(1.0, least / distance)))
    if part >= 99.5:
        return "Nothing is proven about how much closer another ranking model could be."
    return f"A better ranking model could remove at most {part:.0f} % of this distance (proven)."


def proven(model: "Model", intervals: str) -> list[str]:
    """Return where the model comes from, and what is proven about it, in plain words."""
    rankings = len(getattr(model, "weights", ())) if kind_of(model) == "rankings" else None
    words = [f"A model of {items_in(model)}: {words_of(kind_of(model), rankings)}.", *origin_lines(model.about)]
    numbers = noted(model.about, "certificate")
    distance, least = (numbers.get(name) for name in ("distance", "proven_least_distance"))
    if not isinstance(distance, int | float) or not isinstance(least, int | float):
        words.append("The model file has no certificate: `rankstream fit` writes one.")
    else:
        words.append(remainder(distance, least))
    return [*words, *prediction_lines(model.about), intervals]
