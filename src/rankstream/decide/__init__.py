"""Which offer to make: the best one by a model, one that is safe by the data, and the one to try next.

``best_offer`` is the door; ``value`` says what given offers earn, ``safe_offer`` the offer with the best worst case,
``next_offer`` what to try while learning.
"""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
