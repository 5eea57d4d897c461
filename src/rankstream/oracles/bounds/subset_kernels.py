"""Compiled loops over the subsets of a few items, which are numbers with a bit for each."""

from rankstream._core.compiling import compiled
from rankstream._core.types import Vec


@compiled
def without(items: int, item: int) -> int:
    """The place of a set among the sets without an item."""
    # bits below the item stay, those above it come down by one: half as many different sets are left
    return (items & ((1 << item) - 1)) | (items >> (item + 1) << item)


@compiled
def add_over_subsets(sums: Vec) -> None:
    """Replace the number of every set by the sum of those of its subsets."""
    step = 1
    while step < sums.size:
        for start in range(0, sums.size, 2 * step):
            # sets without the bit of this step, and the same sets with it
            low, high = sums[start : start + step], sums[start + step : start + 2 * step]
            for k in range(step):
                high[k] += low[k]
        step *= 2
