"""What is checked when an oracle's memory is loaded: every limit from both sides, without a file."""

from typing import Any

import numpy as np
import pytest

from rankstream.streams.files import packing

pytestmark = pytest.mark.quick


def memory(**changed: Any) -> dict[str, Any]:
    own = {
        "pool": np.array([[0, 1, 2], [2, 1, 0]]),
        "point": np.zeros(4), "asked": np.array([1.5, 2.0]), "answered": np.array([[1, 0, 2]]),
        "numbers": np.array([1, 2]),
    }  # fmt: skip
    return own | changed


def test_what_an_oracle_remembers() -> None:
    packing.check_memory(memory(), memory(), 3)
    packing.check_memory(memory(), memory(pool=np.array([[2, 0, 1]])), 3)  # any number of rankings


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pool": np.zeros((0, 3), dtype=int)}, "pool is of another kind"),
        ({"pool": np.array([[0.0, 1.0, 2.0]])}, "pool is of another kind"),
        ({"pool": np.array([[0, 1, 2, 3]])}, "pool is of another kind"),
        ({"point": np.zeros(5)}, "point is of another kind"),
        ({"pool": np.array([[0, 1, 1]])}, "does not order all items"),
        ({"answered": np.array([[0, 0, 1]])}, "does not order all items"),
    ],
)
def test_what_no_oracle_remembers(changed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        packing.check_memory(memory(), memory(**changed), 3)
