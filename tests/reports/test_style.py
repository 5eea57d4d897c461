"""The colours of pages and reports: everybody can tell the series of a chart apart, on light and on dark paper."""

import re
from itertools import combinations

import numpy as np
import pytest

from rankstream._core.types import Vec
from rankstream.reports.blocks import static

pytestmark = pytest.mark.quick
SIGHT = {  # linear RGB as seen with complete colour blindness (Machado, Oliveira and Fernandes 2009)
    "full": np.eye(3),
    "no red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "no blue": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8728]])  # of linear sRGB, by D65
MIN_DIFFERENCE = 10.0  # of two colours side by side, by CIE 1976, where 2.3 is just noticeable
MIN_CONTRAST = 3.0  # of graphics, by WCAG 2.1


def linear(colour: str) -> Vec:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: Vec) -> Vec:
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in XYZ @ rgb)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def colours() -> dict[str, dict[str, str]]:
    light, dark = static("style.css").split("@media (prefers-color-scheme: dark)")[:2]
    return {
        name: dict(reversed(re.findall(r"--([\w-]+): (#\w{6})", part)))
        for name, part in (("light", light), ("dark", dark))
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_are_told_apart_whatever_colours_one_sees(scheme: str) -> None:
    found = colours()[scheme]
    series = {name: linear(colour) for name, colour in found.items() if name.startswith("series")}
    assert len(series) == 8
    paper = linear(found["paper"]) @ XYZ[1]
    for colour in series.values():
        low, high = sorted((colour @ XYZ[1], paper))
        assert (high + 0.05) / (low + 0.05) >= MIN_CONTRAST
    for sight, matrix in SIGHT.items():
        seen = {name: lab(np.clip(matrix @ colour, 0.0, 1.0)) for name, colour in series.items()}
        for one, other in combinations(seen, 2):
            assert np.linalg.norm(seen[one] - seen[other]) >= MIN_DIFFERENCE, (sight, one, other)
