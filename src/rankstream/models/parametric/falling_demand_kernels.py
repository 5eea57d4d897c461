"""The compiled step of a mixture of logits whose attractions fall along chains: which level is it that was chosen?"""

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.models.parametric.climb_kernels import step


@compiled
def split_choices(
    indptr: Codes, members: Codes, of: Codes, tallies: Vec, mixture: Vec, attraction: Vec, out: Vec
) -> float:
    """Deal every tally out to the members of its closed offer that stand for it; the log-likelihood of the tallies.

    ``of[k]`` is the tally that the k-th member of the closed offers stands for; those of a tally follow each other.
    Each gets a part in proportion to its probability in the mixture (items by classes).
    """
    classes = mixture.size
    sums = np.empty(classes)
    value = 0.0
    for offer in range(indptr.size - 1):
        sums[:] = 0.0
        for k in range(indptr[offer], indptr[offer + 1]):
            for c in range(classes):
                sums[c] += attraction[members[k], c]
        for c in range(classes):
            sums[c] = mixture[c] / sums[c]
        begin = indptr[offer]
        while begin < indptr[offer + 1]:
            end, total = begin, 0.0
            while end < indptr[offer + 1] and of[end] == of[begin]:
                out[end] = 0.0
                for c in range(classes):
                    out[end] += sums[c] * attraction[members[end], c]
                total += out[end]
                end += 1
            tally = tallies[of[begin]]
            if tally > 0.0:
                value += tally * np.log(total)
            for k in range(begin, end):
                out[k] *= tally / total
            begin = end
    return value


@compiled
def falling_step(
    indptr: Codes,
    members: Codes,
    of: Codes,
    tallies: Vec,
    smoothing: float,
    mixture: Vec,
    attraction: Vec,
    split: Vec,
    top: Vec,
    bottom: Vec,
) -> float:
    """One step of EM in place; returns the smoothed likelihood before it. ``split``, ``top``, ``bottom`` are space."""
    value = split_choices(indptr, members, of, tallies, mixture, attraction, split)
    for c in range(mixture.size):
        value += smoothing * np.log(mixture[c])
        for i in range(attraction.shape[0]):
            value += smoothing * np.log(attraction[i, c])
    step(indptr, members, split, smoothing, mixture, attraction, top, bottom)
    return value
