"""PrefLib's files of ballots: .soc and .soi (strict orders, complete or not), .toc and .toi (with ties)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.sources.lines import RawRow, is_text, limited, not_text, opened
from rankstream.data.readers.sources.tables import Files

ENDINGS = (".soc", ".soi", ".toc", ".toi")
HEADER = re.compile(r"#\s*(NUMBER ALTERNATIVES|ALTERNATIVE NAME (\d+))\s*:(.*)", re.IGNORECASE)
TIER = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
LINE = re.compile(r"(\{[^{}]*\}|[^,{}]+)(,(\{[^{}]*\}|[^,{}]+))*")


class Ballots(Files):
    """PrefLib files as a source of rankings: each a tuple of tiers, best first, with its multiplicity."""

    def columns_of_files(self) -> list[str]:
        """Always the same."""
        return ["ranking", "count"]

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The ballots with their lines: (tiers of names, count)."""
        names: dict[str, str] = {}  # by code; an alternative without a name is called by its code
        codes: dict[str, str] = {}  # by name
        is_checked = False
        with opened(path, self.encoding) as file:
            for number, line in enumerate(limited(path, file), 1):
                words, place = line.strip(), f"{path}, line {number}"
                if words.startswith("#") or not words:
                    _note(place, words, names, codes, self.encoding)
                    is_checked = False
                    continue
                if not names:
                    first = "no '# NUMBER ALTERNATIVES: ...' comes before the ballots"
                    raise ValueError(f"{place}: {first}: use PrefLib's current format.")
                if not is_checked:
                    _check_names(place, names, codes)
                    is_checked = True
                try:
                    if not is_text(words):
                        raise BadRecordError("malformed", not_text("text", self.encoding))
                    count, ranking = words.split(":", 1) if ":" in words else ("", words)
                    cells = (_tiers(ranking.strip(), names), count.strip())
                except BadRecordError as bad:
                    yield RawRow(f"{path}, line", number, (words,), bad)
                else:
                    yield RawRow(f"{path}, line", number, cells)


def _check_names(place: str, names: dict[str, str], codes: dict[str, str]) -> None:
    """Raise a ValueError if the name of an alternative is the code of one without a name."""
    for name, code in codes.items():
        if name != code and names.get(name) == name:
            raise ValueError(
                f"{place}: the alternative {code} is called {shown(name)}, like another one: rename one of them."
            )


def _note(place: str, words: str, names: dict[str, str], codes: dict[str, str], encoding: str) -> None:
    """Read a line of the header: the number of alternatives, or the name of one."""
    match = HEADER.fullmatch(words)
    if match is None:
        return
    code, value = match[2], match[3].strip()
    if not is_text(value):
        raise ValueError(f"{place}: {not_text('text', encoding)}")
    if code is None:
        if not (value.isascii() and value.isdecimal()) or not 0 < len(value) < 6:
            raise ValueError(f"{place}: the number of alternatives is {shown(value)}: it must be a whole number.")
        for number in map(str, range(1, int(value) + 1)):
            names.setdefault(number, number)
    elif not value or codes.setdefault(value, code) != code:
        raise ValueError(f"{place}: the name {shown(value)} is empty or used twice: give each its own.")
    else:
        names[code] = value


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
                    "unknown item", f"the alternative {code!r} is not among the {len(names)} of the file: correct it."
                )
        tiers.append(tuple(names[code] for code in codes))
    return tuple(tier for tier in tiers if tier)
