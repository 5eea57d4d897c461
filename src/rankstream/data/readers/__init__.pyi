"""The public names; `lazy_loader` imports each when it is first used."""

from .account import Account as Account
from .problems import Problem as Problem
from .problems import Problems as Problems
from .reading import Reading as Reading
from .reading import read as read
from .reading import read_counts as read_counts
from .sales.reading import read_sales as read_sales
from .unused_columns import UnusedColumn as UnusedColumn

__all__: list[str]
