"""The tie rule: which ranking is kept where several are equally cheap."""

from typing import Literal

from rankstream._core.arguments import whole_number
from rankstream.oracles import tie_kernels as kernels

Ties = Literal["first", "last", "random"]
TIE_RULES = {"first": kernels.FIRST, "last": kernels.LAST, "random": kernels.RANDOM}


def check_ties(ties: Ties, seed: int) -> None:
    """Refuse a tie rule or a seed that cannot be.

    Many rankings have the same vertex, and the rule decides which of them is kept. It ranks from the top, choosing
    among the items that may come next without changing what is chosen from any offer: ``"first"`` takes them in their
    order and the no-choice item as late as possible, ``"last"`` that item as soon as possible and the others in reverse
    order, ``"random"`` one of them uniformly, from a hash of the seed and the vertex. So the same costs always get the
    same answer, equal vertices are completed alike, and different ones independently. Where different vertices are
    equally cheap, the first items win them (with ``"last"``, the last).
    """
    if ties not in TIE_RULES:
        raise ValueError(f"There is no tie rule {ties!r}: choose one of {', '.join(map(repr, TIE_RULES))}.")
    if whole_number("seed", seed) >= 2**63:
        raise ValueError(f"The seed {seed} is too large: it must be below 2**63.")
