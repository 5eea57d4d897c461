"""Reading what people have: transactions, long and wide tables, counts and ballots, in files and data frames."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
