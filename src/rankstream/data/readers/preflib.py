"""PrefLib's files of ballots: .soc and .soi (strict orders, complete or not), .toc and .toi (with ties)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rankstream.data.readers.lines import Row, is_text, opened
from rankstream.data.readers.problems import BadRecordError

ENDINGS = (".soc", ".soi", ".toc", ".toi")
HEADER = re.compile(r"#\s*(NUMBER ALTERNATIVES|ALTERNATIVE NAME (\d+))\s*:(.*)", re.IGNORECASE)
TIER = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
LINE = re.compile(r"(\{[^{}]*\}|[^,{}]+)(,(\{[^{}]*\}|[^,{}]+))*")


class Ballots:
    """PrefLib files as a source of rankings: each a tuple of tiers, best first, with its multiplicity."""

    count_if_missing = False

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name, self.paths = name, paths
        self.columns = ["ranking", "count"]

    def table(self, connection: Any) -> None:
        """None: these files are small, and read line by line."""

    def scalar(self, column: str) -> str:
        """Never asked for, as there is no table."""
        return column

    def decode(self, cell: Any) -> Any:
        """A cell as it came."""
        return cell

    def rows(self) -> Iterator[Row]:
        """All ballots, with their lines."""
        for path in self.paths:
            yield from ballot_rows(path)


def ballot_rows(path: Path) -> Iterator[Row]:
    """The ballots of one file: (tiers of names, count)."""
    names: dict[str, str] = {}
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            words, place = line.strip(), f"{path}, line {number}"
            if words.startswith("#") or not words:
                _note(place, words, names)
                continue
            if not names:
                raise ValueError(
                    f"{place}: no '# NUMBER ALTERNATIVES: ...' comes before the ballots: give a PrefLib file of today."
                )
            try:
                if not is_text(words):
                    raise BadRecordError("malformed", "this is not text in UTF-8: save it as such.")
                count, ranking = words.split(":", 1) if ":" in words else ("", words)
                cells = (_tiers(ranking.strip(), names), count.strip())
            except BadRecordError as bad:
                yield Row(f"{path}, line", number, (words,), bad)
            else:
                yield Row(f"{path}, line", number, cells)


def _note(place: str, words: str, names: dict[str, str]) -> None:
    found = HEADER.fullmatch(words)
    if found is None:
        return
    value = found[3].strip()
    if found[2] is None:
        if not (value.isascii() and value.isdecimal()) or not 0 < len(value) < 6:
            raise ValueError(f"{place}: the number of alternatives is {value!r}: it must be a whole number.")
        for code in range(1, int(value) + 1):
            names.setdefault(str(code), str(code))
    elif not value or value in (name for code, name in names.items() if code not in (found[2], value)):
        raise ValueError(f"{place}: the name {value!r} is empty or given twice: name each alternative differently.")
    else:
        names[found[2]] = value


def _tiers(ranking: str, names: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    if not LINE.fullmatch(ranking):
        raise BadRecordError(
            "malformed", f"the ballot {ranking!r} is not of the form 'count: 1,2,{{3,4}}': correct it."
        )
    tiers = []
    for tied, single in TIER.findall(ranking):
        codes = [code.strip() for code in (tied or single).split(",")] if tied or single else []
        for code in codes:
            if code not in names:
                raise BadRecordError(
                    "unknown item", f"the alternative {code!r} is not among the {len(names)} of the file."
                )
        tiers.append(tuple(names[code] for code in codes))
    return tuple(tier for tier in tiers if tier)
