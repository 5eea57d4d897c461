"""Which offer to make: the best one by a model, one that is safe by the data, and the one to try next.

``best_offer`` is the door; ``value`` says what given offers earn, ``safe_offer`` the offer with the best worst case,
``next_offer`` what to try while learning.
"""

from typing import TYPE_CHECKING

from rankstream._core.lazy import importer

if TYPE_CHECKING:
    from rankstream.decide.choosing import best_offer
    from rankstream.decide.decision import Decision, Lead, RunnerUp
    from rankstream.decide.learning import NextOffer, next_offer
    from rankstream.decide.safety import SafeOffer, safe_offer
    from rankstream.decide.valuing import value

__all__ = [
    "Decision",
    "Lead",
    "NextOffer",
    "RunnerUp",
    "SafeOffer",
    "best_offer",
    "next_offer",
    "safe_offer",
    "value",
]
__getattr__ = importer(
    __name__,
    {
        **dict.fromkeys(("Decision", "Lead", "RunnerUp"), "decision"),
        **dict.fromkeys(("NextOffer", "next_offer"), "learning"),
        **dict.fromkeys(("SafeOffer", "safe_offer"), "safety"),
        "best_offer": "choosing",
        "value": "valuing",
    },
)
