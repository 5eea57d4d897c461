"""PrefLib's files of ballots: .soc and .soi (strict orders, complete or not), .toc and .toi (with ties)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.sources.lines import UTF8, RawRow, is_text, limited, not_text, opened
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
        """The ballots, with their lines."""
        return ballot_rows(path, self.encoding)


def ballot_rows(path: Path, encoding: str = UTF8) -> Iterator[RawRow]:
    """The ballots of one file: (tiers of names, count)."""
    names = Names()
    with opened(path, encoding) as file:
        for number, line in enumerate(limited(path, file), 1):
            words, place = line.strip(), f"{path}, line {number}"
            if words.startswith("#") or not words:
                _note(place, words, names, encoding)
                continue
            if not names.by_code:
                raise ValueError(
                    f"{place}: no '# NUMBER ALTERNATIVES: ...' comes before the ballots: use PrefLib's current format."
                )
            names.check(place)
            try:
                if not is_text(words):
                    raise BadRecordError("malformed", not_text("text", encoding))
                count, ranking = words.split(":", 1) if ":" in words else ("", words)
                cells = (_tiers(ranking.strip(), names.by_code), count.strip())
            except BadRecordError as bad:
                yield RawRow(f"{path}, line", number, (words,), bad)
            else:
                yield RawRow(f"{path}, line", number, cells)


class Names:
    """The names of alternatives by their codes, which they bear until they are named."""

    def __init__(self) -> None:
        self.by_code: dict[str, str] = {}
        self._code_of: dict[str, str] = {}
        self._checked = True

    def number(self, most: int) -> None:
        """Let there be this many alternatives."""
        for code in range(1, most + 1):
            self.by_code.setdefault(str(code), str(code))
        self._checked = False

    def give(self, code: str, name: str) -> bool:
        """Name one; False where another was given the name."""
        if self._code_of.get(name, code) != code:
            return False
        self._code_of.pop(self.by_code.get(code, ""), None)
        self.by_code[code], self._code_of[name] = name, code
        self._checked = False
        return True

    def check(self, place: str) -> None:
        """That no alternative is called by the code of another, which bears it still."""
        if self._checked:
            return
        for name, code in self._code_of.items():
            if name != code and self.by_code.get(name) == name:
                raise ValueError(
                    f"{place}: the alternative {code} is called {shown(name)}, like another one: rename one of them."
                )
        self._checked = True


def _note(place: str, words: str, names: Names, encoding: str) -> None:
    found = HEADER.fullmatch(words)
    if found is None:
        return
    value = found[3].strip()
    if not is_text(value):
        raise ValueError(f"{place}: {not_text('text', encoding)}")
    if found[2] is None:
        if not (value.isascii() and value.isdecimal()) or not 0 < len(value) < 6:
            raise ValueError(f"{place}: the number of alternatives is {shown(value)}: it must be a whole number.")
        names.number(int(value))
    elif not value or not names.give(found[2], value):
        raise ValueError(f"{place}: the name {shown(value)} is empty or used twice: give each its own.")


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
