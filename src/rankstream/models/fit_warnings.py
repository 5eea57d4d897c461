"""Warnings about a model's fit, from the facts in its file, which may contain anything."""

from collections.abc import Mapping
from typing import Any

CUT_SHORT = (
    "The fit stopped early: the model is less accurate than it could be, and depends on the speed "
    "of the machine. Fit again with a larger budget or timeout."
)


def fit_warnings(about: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each column that the fit ignored although choices depend on it, if it was cut short,
    if its choices changed over time, and for items that were added to the model later.

    The facts are those of a model (``model.about``), with the columns as ``Reading.unused`` has them.

    >>> fit_warnings({"unused": [{"name": "Price", "warning": "Price is ignored."}, {"name": "date", "warning": ""}]})
    ['Price is ignored.']
    """
    noted = about.get("item_notes")  # of ``with_items``
    entries = [about.get("changed"), *(noted if isinstance(noted, list) else [])]
    notes = [note for note in entries if isinstance(note, str)]
    return [*([CUT_SHORT] if was_cut_short(about) else []), *(entry["warning"] for entry in _ignored(about)), *notes]


def was_cut_short(about: Mapping[str, Any]) -> bool:
    """Return whether the fit ended by its budget, its timeout or Ctrl-C, before it was accurate.

    >>> was_cut_short({"cut_short": True}), was_cut_short({"certificate": {"cut_short": True}}), was_cut_short({})
    (True, True, False)
    """
    return about.get("cut_short", noted(about, "certificate").get("cut_short")) is True  # there in files of 0.3


def noted(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the facts that a model has under a name; none where its file has something else there.

    >>> noted({"data": {"file": "choices.csv"}}, "data"), noted({"data": 7}, "data")
    ({'file': 'choices.csv'}, {})
    """
    found = about.get(name)
    return found if isinstance(found, dict) else {}


def interval_words(about: Mapping[str, Any], level: float = 0.95) -> str:
    """Return the name of a model's intervals: with their level only if the fit ignored no relevant column.

    >>> interval_words({}), interval_words({"unused": [{"name": "Price", "warning": "Price is ignored."}]})
    ('95 % intervals', 'intervals (they ignore Price, so they are too narrow)')
    """
    names = ["prices" if "," in str(entry.get("name")) else str(entry.get("name")) for entry in _ignored(about)]
    if not names:
        return f"{100 * level:g} % intervals"
    return f"intervals (they ignore {' and '.join(names)}, so they are too narrow)"


def _ignored(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    unused = about.get("unused")
    entries = [entry for entry in unused if isinstance(entry, dict)] if isinstance(unused, list) else []
    return [entry for entry in entries if isinstance(entry.get("warning"), str) and entry["warning"]]
