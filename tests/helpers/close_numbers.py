"""Compare the output of an example on a page with what it prints: text exactly, decimal numbers closely.

Another machine or version of numpy changes the last digits of a fit. Pages show real digits anyway; long numbers are
rounded there. Whole numbers count as decimal ones before a percent sign and as ends of an interval.
"""

import re
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker, register_optionflag

CLOSE_NUMBERS = register_optionflag("CLOSE_NUMBERS")
NUMBER = r"(?<![\w.])[-+]?\d[\d,]*\.\d+(?:e[-+]?\d+)?"
INTERVAL, PERCENT = r"\[-?\d+, -?\d+\]", r"(?<![\w.,])\d+(?= %)"
KINDS = rf"(?P<number>{NUMBER})|(?P<interval>{INTERVAL})|(?P<percent>{PERCENT})"
PART = re.compile(rf"{KINDS}|(?P<gap>\.\.\.)|(?P<space>\s+)|.", re.DOTALL)
MAX_RELATIVE_ERROR = 0.02  # not tuned: the largest seen between machines is far smaller
check_exactly = OutputChecker.check_output


def is_close(shown: str, printed: str) -> bool:
    """Whether two decimal numbers differ by at most 2 %, or one unit of the last digit; half of it if rounded."""
    first, second = (float(number.replace(",", "")) for number in (shown, printed))
    power = shown.partition("e")[2]
    decimals, others = (len(number.partition("e")[0].partition(".")[2]) for number in (shown, printed))
    unit = (1.001 if decimals == others else 0.501) * 10.0 ** (int(power or 0) - decimals)
    return abs(first - second) <= max(MAX_RELATIVE_ERROR * abs(first), unit)


def matches(shown: str, printed: str) -> bool:
    """Whether an output is as shown, but for small differences of decimal numbers; ``...`` stands for any text."""
    numbers, pattern = [], []
    for part in PART.finditer(shown.strip()):
        if part["number"]:
            numbers.append(part[0])
            pattern.append(rf"({NUMBER})(?!\d)")
        elif part["interval"] or part["percent"]:
            numbers += re.findall(r"-?\d+", part[0])
            pattern.append(r"\[(-?\d+), (-?\d+)\]" if part["interval"] else rf"({PERCENT})")
        else:
            pattern.append(".*?" if part["gap"] else r"\s+" if part["space"] else re.escape(part[0]))
    found = re.fullmatch("".join(pattern), printed.strip(), re.DOTALL)
    return found is not None and all(map(is_close, numbers, found.groups()))


def check(self: OutputChecker, want: str, got: str, optionflags: int) -> bool:
    """Compare as doctest does, and numbers closely where an example asks for it."""
    if check_exactly(self, want, got, optionflags):
        return True
    return bool(optionflags & CLOSE_NUMBERS) and matches(want, got)


def teach_doctest() -> None:
    """Let doctest, and pytest's checker, which inherits from it, know the flag ``CLOSE_NUMBERS``."""
    OutputChecker.check_output = check  # type: ignore[method-assign]


PAGE_FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE | CLOSE_NUMBERS
