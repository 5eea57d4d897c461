"""Which offer to make: the best by a model, a safe one given the data, or the next one to try.

Start with ``best_offer``. ``value`` returns what given offers earn, ``safe_offer`` the offer with the best worst case,
and ``next_offer`` the offer to try while learning.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
