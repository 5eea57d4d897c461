"""Bootstrap intervals of a decision's value and of its lead over the runner-up."""

from dataclasses import replace
from typing import Any

import numpy as np

from rankstream._core import Deadline, Label, Vec, Watch, process_seconds, until, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.context import Context
from rankstream.decide.decision import Decision, Lead
from rankstream.decide.moves import mask_of, single_changes
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import OfferProblem
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.entropy.soft_lattice import shared_programs
from rankstream.models.files import method_of

MIN_REPLICATES, REPLICATES = 5, 20
"""Refits that an interval needs, and gets if there is time; no benchmark chose them. Few need Student's quantile."""
N_RIVALS = 20
"""Offers among which errors could make another one look best. With 10 to 40, claims of seeds 2 and 10 to 14 of
``benchmarks/advice.py`` (10,000 visits with prices) were at most 4.7, 3.1 and 2.7 % above the truth, uncorrected 6.6 %.
"""
N_DRAWN_ERRORS = 2000  # errors of the mean are 2 % of those of one offer
PART_FOR_REFITS = 0.8  # the share of the time after which no refit starts: valuing the offers comes after all refits


def bootstrap_of(model: Any, counts: ChoiceCounts, seed: int = 0, watch: Watch = unwatched) -> Bootstrap:
    """Refit a model to choices simulated from it; a ``TooFewRefitsError`` if ``watch`` stops it too early."""
    if not hasattr(model, "FORMAT"):
        raise ValueError(f"A {type(model).__name__} cannot be refitted: give a Bootstrap instead of counts.")
    if getattr(model, "widened", None) is not None:
        narrow, rows = model.widened
        return bootstrap_of(narrow, counts, seed, watch).with_items(rows, seed)
    if watch("refits"):  # the first one takes seconds, and is not interrupted
        raise TooFewRefitsError(0.0)
    began = process_seconds()

    def stop(text: str, fraction: float) -> bool:
        stopped, done = watch(text), round(fraction * REPLICATES)
        if stopped and done < MIN_REPLICATES:
            raise TooFewRefitsError((process_seconds() - began) * MIN_REPLICATES / max(1, done))
        return stopped

    return Bootstrap(counts, method_of(model), REPLICATES, seed, model=model, watch=stop)


class TooFewRefitsError(Exception):
    """Too few refits for an interval; the argument is about the CPU seconds that enough of them need, 0 if unknown."""


def with_interval(
    found: Decision,
    counts: ChoiceCounts | Bootstrap,
    interval: float = 0.95,
    seed: int = 0,
    top: int = 1,
    watch: Watch = unwatched,
) -> Decision:
    """Add intervals to a decision: value -+ t * sqrt(se^2 + shift^2 + misfit), with Student's t for few refits.

    Values of offers are less by the overestimate of the best of many, except that of today's offer.
    The offers are kept fixed. A lead whose interval contains 0 is noise: the data do not show which of the two offers
    is better. If ``watch`` stops it before ``MIN_REPLICATES`` refits, there are no intervals.
    """
    from scipy.special import stdtrit

    problem, kept, around = found.problem, found.runners_up[: max(1, top - 1)], found.context or Context()
    part = until(watch, PART_FOR_REFITS)
    try:
        many = counts if isinstance(counts, Bootstrap) else bootstrap_of(problem.model, counts, seed, part)
    except TooFewRefitsError as error:
        return replace(found, runners_up=kept, context=replace(around, refit_seconds=error.args[0]))
    check_items(problem, many.model)
    offers = [found.offer, *(runner.offer for runner in found.runners_up[:1])]
    if around.present is not None:
        offers += [around.present, *(change.offer for change in around.changes)]
    rivals = single_changes(problem, found.offer_mask, found.value, Deadline(0.0))[:N_RIVALS]
    offers = list(dict.fromkeys([*offers, *(rival.offer for rival in rivals)]))
    masks = [mask_of(problem, offer) for offer in offers]
    rows: list[Vec] = []
    with shared_programs():  # refits have the same offers, and predict the same ones
        for model in many.models:
            if len(rows) < MIN_REPLICATES or not watch("values"):
                rows.append(values(problem, masks, model))
    table, wide = np.array(rows), float(stdtrit(len(rows) - 1, 0.5 + 0.5 * interval))
    worths = values(problem, masks)
    worth = dict(zip(offers, zip(worths.tolist(), table.T, strict=True), strict=True))
    kept_offer = around.present is not None and np.isclose(around.present_value, found.value, 1e-9, 0.0)
    stretch = float(np.sqrt(many.misfit.stretched(np.array(1.0))))
    near = [offers.index(offer) for offer in (found.offer, *(rival.offer for rival in rivals))]
    too_much = 0.0 if kept_offer else overestimate(worths[near], stretch * table[:, near])

    def ends(offer: tuple[Label, ...], base: tuple[Label, ...] | None) -> tuple[float, float, float]:
        """Return the value of an offer, or its difference from a base, with the ends of its interval."""
        (value, refits), less = worth[offer], too_much if base in (None, around.present) else 0.0
        if base is not None:
            value, refits = value - worth[base][0], refits - worth[base][1]
        reach = wide * float(np.sqrt(many.misfit.stretched(np.array(spread(refits, value) ** 2))))
        return value - less, value - less - reach, value - less + reach

    lead = Lead(*ends(found.offer, offers[1])) if found.runners_up else None
    if around.present is not None:
        changes = []
        for change in around.changes:
            gain, *both = ends(change.offer, around.present)
            changes.append(replace(change, gain=gain, interval=(both[0], both[1])))
        gain, *both = ends(found.offer, around.present)
        around = replace(around, changes=tuple(changes), gain=gain, gain_interval=(both[0], both[1]))
    around, claim = replace(around, refits=len(rows)), ends(found.offer, None)[1:]
    return replace(found, interval=claim, lead=lead, runners_up=kept, context=around, overestimate=too_much)


def overestimate(worths: Vec, replicates: Vec) -> float:
    """Return by how much the value of the offer that looks best exceeds its true value, on average.

    Errors of the values are drawn from a normal distribution with the covariance of the replicates (a row each) around
    ``worths``. The offer that looks best with an error has a large one.

    >>> errors = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])
    >>> [round(overestimate(np.array(worths), 1.0 + errors), 2) for worths in ([1.0, 1.0], [2.0, 1.0])]
    [0.05, 0.0]
    """
    errors = (replicates - replicates.mean(axis=0)) / np.sqrt(len(replicates) - 1)
    drawn = np.random.default_rng(0).standard_normal((N_DRAWN_ERRORS, len(errors))) @ errors
    drawn -= drawn.mean(axis=0)
    return max(0.0, float(drawn[np.arange(N_DRAWN_ERRORS), (worths + drawn).argmax(axis=1)].mean()))


def check_items(problem: OfferProblem, other: Any) -> None:
    """Check that data or a model have the items of the decision."""
    new = getattr(problem.model, "never_offered", ())
    known = (*other.assortments.items, *new) if isinstance(other, ChoiceCounts) else other.items
    if set(known) != set(problem.items):
        raise ValueError("The counts and the model have different items: give the counts that the model was fitted to.")


def spread(replicates: Vec, value: float) -> float:
    """Return the replicates' standard deviation, with the distance of their mean from the value as bias."""
    return float(np.hypot(replicates.std(ddof=1), replicates.mean() - value))
