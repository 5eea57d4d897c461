"""The compiled EM of a mixture of logits: its step, made fast by squared extrapolation as ``climb`` makes it.

Where attractions fall along chains, a step also asks which level it is that was chosen: offers are closed then
(``lifts``), and ``of`` says which tally each of their members stands for. It is empty elsewhere.
"""

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.models.parametric.em_kernels import mixture_step


@compiled
def normalise(mixture: Vec, attraction: Vec) -> None:
    """Scale the mixture, and the attractions of each class (items by classes), to the sum 1."""
    mixture /= mixture.sum()
    for k in range(mixture.size):
        total = 0.0
        for i in range(attraction.shape[0]):
            total += attraction[i, k]
        for i in range(attraction.shape[0]):
            attraction[i, k] /= total


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
def step(
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
    """One step of EM in place; returns the smoothed likelihood before it. ``top`` and ``bottom`` are space.

    ``split`` are the choices of the members: the tallies, or where ``of`` is not empty, what they are split into.
    """
    top[:] = 0.0
    bottom[:] = 0.0
    value = split_choices(indptr, members, of, tallies, mixture, attraction, split) if of.size else 0.0
    likelihood = mixture_step(indptr, members, split, mixture, attraction, top, bottom)
    value = value if of.size else likelihood
    n_items, n_classes = attraction.shape
    for k in range(n_classes):
        value += smoothing * np.log(mixture[k])
        customers = 0.0
        for i in range(n_items):
            value += smoothing * np.log(attraction[i, k])
            customers += top[i, k]
            attraction[i, k] = (top[i, k] + smoothing) / (bottom[i, k] + smoothing * n_items)
        mixture[k] = customers + smoothing
    normalise(mixture, attraction)
    return value


@compiled
def climb_mixture(
    indptr: Codes,
    members: Codes,
    of: Codes,
    tallies: Vec,
    smoothing: float,
    tolerance: float,
    mixture: Vec,
    attraction: Vec,
    longest: float,
    heights: Vec,
) -> tuple[int, float, bool]:
    """Three steps at a time, in place, until they gain no more than the tolerance or ``heights`` is full.

    Returns how many heights were written, two for every three steps, the longest extrapolation to try next, and
    whether the climb has converged.
    """
    n_items, n_classes = attraction.shape
    split, top, bottom = np.empty(members.size), np.empty_like(attraction), np.empty_like(attraction)
    if not of.size:
        split[:] = tallies
    first_mix, first = np.empty_like(mixture), np.empty_like(attraction)
    second_mix, second = np.empty_like(mixture), np.empty_like(attraction)
    used = 0
    while used + 2 <= heights.size:
        first_mix[:], first[:] = mixture, attraction
        height = step(indptr, members, of, tallies, smoothing, first_mix, first, split, top, bottom)
        second_mix[:], second[:] = first_mix, first
        next_height = step(indptr, members, of, tallies, smoothing, second_mix, second, split, top, bottom)
        heights[used], heights[used + 1] = height, next_height
        used += 2
        # the length of the extrapolation: how far steps that shrink evenly would go on (Varadhan and Roland 2008)
        change, bend = 0.0, 0.0
        for k in range(n_classes):
            change += (first_mix[k] - mixture[k]) ** 2
            bend += (second_mix[k] - 2.0 * first_mix[k] + mixture[k]) ** 2
            for i in range(n_items):
                change += (first[i, k] - attraction[i, k]) ** 2
                bend += (second[i, k] - 2.0 * first[i, k] + attraction[i, k]) ** 2
        length = max(1.0, min(longest, np.sqrt(change) / max(np.sqrt(bend), 1e-300)))
        for k in range(n_classes):
            curve = second_mix[k] - 2.0 * first_mix[k] + mixture[k]
            far = mixture[k] + 2.0 * length * (first_mix[k] - mixture[k]) + length**2 * curve
            # a part of the last value at least, so that no positive number becomes 0 or less
            mixture[k] = max(far, 0.1 * second_mix[k])
            for i in range(n_items):
                curve = second[i, k] - 2.0 * first[i, k] + attraction[i, k]
                far = attraction[i, k] + 2.0 * length * (first[i, k] - attraction[i, k]) + length**2 * curve
                attraction[i, k] = max(far, 0.1 * second[i, k])
        normalise(mixture, attraction)
        far_height = step(indptr, members, of, tallies, smoothing, mixture, attraction, split, top, bottom)
        better = far_height >= next_height
        if length == longest:
            longest = 4.0 * longest if better else max(1.0, longest / 4.0)
        if not better:
            mixture[:], attraction[:] = second_mix, second
        gain = (far_height if better else next_height) - height
        if gain <= tolerance and (better or length == 1.0):
            return used, longest, True
    return used, longest, False
