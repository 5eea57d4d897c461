"""Reading what people have: transactions, long and wide tables, counts and ballots, in files and data frames."""

from rankstream.data.readers.outside import Sensitivity, outside_sensitivity, with_outside
from rankstream.data.readers.problems import Problem, Problems
from rankstream.data.readers.reading import Reading, read, read_counts

__all__ = [
    "Problem",
    "Problems",
    "Reading",
    "Sensitivity",
    "outside_sensitivity",
    "read",
    "read_counts",
    "with_outside",
]
