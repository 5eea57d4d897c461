"""Fit a model with its certificate, by any method: ``estimate``, and ``fit_within`` for a budget of CPU seconds."""

from __future__ import annotations  # so that help shows Data, not the long type behind it

import logging
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from math import inf
from time import perf_counter
from typing import Any, Unpack

from rankstream._core import Deadline, Progress, interrupts, number_between, thread_seconds
from rankstream._core.threads import one_blas_thread
from rankstream.columns.corrective import is_slow
from rankstream.data import Assortments, ChoiceCounts, UncertainCounts, contradiction
from rankstream.estimation.errors import store_errors
from rankstream.estimation.methods import METHODS, WITH_PRICES, Logit, Method, Nearest, PrimalDual, make, pick
from rankstream.estimation.methods.selection import Settings
from rankstream.estimation.task import Data, Task, make_task
from rankstream.estimation.uncertain import PossibleOffers
from rankstream.models.base import Model
from rankstream.models.prices import levels_of, most_frequent_prices
from rankstream.models.shrinkage import tally_facts
from rankstream.solver.runs import Estimate

DEFAULT_SECONDS, DEFAULT_SLOW_SECONDS = 600.0, 60.0
"""CPU seconds of ``nearest`` and ``primal-dual`` without a budget; the second for slow oracles. Not tuned."""
LOG = logging.getLogger("rankstream")
MAX_EM_ROUNDS, EM_TOLERANCE = 50, 1e-5  # fits of a logit; nats per choice that a round must gain; by no benchmark
METHOD_ROUNDS = 2  # fits by the method: a third took less than 1 % off, benchmarks/uncertain_offers.py, seed 0

__all__ = ["Estimate", "compile_first", "estimate", "fit_within", "run_task"]


def estimate(
    assortments: Assortments | ChoiceCounts | UncertainCounts,
    data: Data | None = None,
    *,
    method: str | Method = "auto",
    seed: int = 0,
    **settings: Unpack[Settings],
) -> Estimate[Any]:
    """Estimate a model from counts, from frequencies, or from an iterable that yields either once a round.

    With counts, offers without choices are ignored, and the others are weighted by their observations. Frequencies
    without counts are taken as exact. No ranking model can predict choices that contradict an order of the items: a
    warning gives their number, and ``model.about["contradiction"]`` stores it.

    Offers that are known in part are weighed by EM: logits until the likelihood hardly rises, then fits by the method.
    Distance and certificate are then those of the choices that are expected from each possible offer.

    Parameters
    ----------
    assortments : ChoiceCounts, UncertainCounts or Assortments
        Counts, which know their offers (or know them in part), or the offers of the data that follow.
    data : array or iterable, optional
        With assortments: one vector of frequencies, counts, a table with a row of frequencies per round (a stream known
        in advance), or an iterable with one element per round, whose source may be live.
    method : str or settings
        ``"auto"`` picks a method (see ``methods.pick``). Or a name such as ``"nearest"``, or settings such as
        ``methods.Nearest(gap=1e-6)``. ``Estimate.method`` is the method used.
    seed : int
        Random seed for ties between rankings and for starting points.
    **settings
        Settings of a method that is given by its name, such as ``gap=1e-6``. With ``attributes`` of the items
        (``read_attributes``), "auto" is maximum entropy, and the model's ``with_items`` adds items never offered.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "nothing"), ("pie", "nothing")]), [50, 50, 25, 75])
    >>> fit = estimate(counts)
    >>> fit.method.name, round(fit.model.predict(("tea", "pie", "nothing"))["nothing"], 1)
    ('max-entropy', 0.4)
    >>> sparse = estimate(counts, method="nearest", gap=1e-3)
    >>> len(sparse.model.rankings), sparse.certificate.gap <= 1e-3
    (3, True)
    """
    if isinstance(assortments, UncertainCounts):
        if data is not None:
            raise ValueError("Counts include their offers: give the counts alone, or assortments and data.")
        chosen = make(method, **settings)
        return run_task(make_task(choices_by_em(assortments, chosen, seed), None, seed), chosen or "auto")
    return run_task(make_task(assortments, data, seed), method, **settings)


def choices_by_em(counts: UncertainCounts, chosen: Method | None, seed: int) -> ChoiceCounts:
    """Return the choices that are expected from each possible offer, by fits of a logit first and the method last."""
    possible = PossibleOffers(counts)
    weights, before = possible.weigh(None)
    quick = chosen if isinstance(chosen, Logit) else Logit()
    for _ in range(MAX_EM_ROUNDS):
        weights, now = possible.weigh(quick.model(make_task(possible.expected(weights), None, seed)))
        if now - before <= EM_TOLERANCE * counts.observations:
            break
        before = now
    for _ in range(0 if quick is chosen else METHOD_ROUNDS - 1):
        task = make_task(possible.expected(weights), None, seed)
        weights, _ = possible.weigh((chosen or pick(task)).model(task))
    return possible.expected(weights)


def run_task(task: Task, method: str | Method, tolerance: float | None = None, **settings: Any) -> Estimate[Any]:
    """Fit a task by a method, for ``estimate`` and ``fit_within``."""
    chosen = make(method, tolerance, **settings) or pick(task, tolerance)
    began = perf_counter()
    LOG.info("fitting by %s: %d offers of %d items", chosen.name, task.assortments.n_offers, task.assortments.n_items)
    with one_blas_thread():
        fit = replace(chosen.fit(task), method=chosen)
    levels = levels_of(fit.model) if isinstance(fit.model, Model) else None
    if levels is not None and task.stands_still:
        fit.model.note(usual_prices=most_frequent_prices(task.counts, levels))
    if isinstance(fit.model, Model) and isinstance(task.data, ChoiceCounts):
        fit.model.note(**tally_facts(fit.model, task.data))
    seconds, gap = perf_counter() - began, fit.certificate.gap
    if isinstance(task.data, ChoiceCounts) and (sentence := contradiction(task.data)):
        fit.model.note(contradiction=sentence)
        warnings.warn(sentence, stacklevel=3)
    LOG.info("fitted by %s in %.2f s: %d rounds, gap %.3g", chosen.name, seconds, fit.rounds, gap)
    return fit


def fit_within(
    counts: ChoiceCounts,
    budget: float | None = None,
    method: str | Method = "auto",
    tolerance: float | None = None,
    seed: int = 0,
    watch: Progress | None = None,
    clock: Callable[[], float] = thread_seconds,
    timeout: float | None = None,
    errors: bool = False,
) -> Estimate[Any]:
    """Run ``estimate`` for about ``budget`` CPU seconds. Ctrl-C stops early, with the model so far.

    The certificate is for the l2 distance with offers weighted by their observations, or for the method's own distance.
    It is valid for any model. The same seed gives the same model unless the fit is cut short, which depends on the
    machine; ``Estimate.cut_short`` and ``model.about`` then say so.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices.
    budget : float, optional
        CPU seconds of the calling thread, without compilation, after which the fit returns its best model. Single
        steps, such as building tables, are not interrupted. Without a budget, a fit ends when it is accurate;
        ``nearest`` and ``primal-dual`` also after 600 s, or 60 s if oracles are slow.
    method : str or settings
        As for ``estimate``.
    tolerance : float, optional
        The accuracy at which a method given by name stops, in its own unit.
    seed : int
        As for ``estimate``.
    watch : callable, optional
        Called with the current step and the used fraction of the budget.
    clock : callable
        Returns the CPU time in seconds.
    timeout : float, optional
        Limit in wall-clock seconds.
    errors : bool
        Whether to store standard errors with a maximum-entropy model (``StoredErrors``), if there is time.
    """
    cpu_limit = inf if budget is None else number_between("budget", budget, 0.0)
    wall_limit = inf if timeout is None else number_between("timeout", timeout, 0.0)
    with interrupts() as signals:
        deadline = Deadline(cpu_limit, signals, watch, clock, wall_limit)
        proving = copy(deadline)
        task = Task(counts.assortments, counts, seed, deadline, proving)
        chosen = make(method, tolerance) or pick(task, tolerance, budget)
        slow = is_slow(task.oracle)
        for part in (deadline, proving):
            if budget is None and isinstance(chosen, Nearest | PrimalDual):
                part.seconds = DEFAULT_SLOW_SECONDS if slow else DEFAULT_SECONDS
        fit = run_task(task, chosen)
        if deadline.stopped and isinstance(fit.model, Model):
            fit.model.note(cut_short=True)
        elif errors:
            store_errors(fit, counts, seed, lambda text, _: proving(text))
        return replace(fit, converged=fit.converged and not deadline.stopped, cut_short=deadline.stopped)


def compile_first(method: Method) -> None:
    """Fit a market of three items, so that all kernels are compiled into the cache that workers load from.

    Settings that are objects, such as an oracle or a prior, are left out; custom methods are not tried.
    """
    kind: Any = (METHODS | WITH_PRICES).get(method.name)
    if kind is None or not isinstance(method, kind):
        return
    values = {field.name: getattr(method, field.name) for field in fields(kind)}
    plain = {name: value for name, value in values.items() if isinstance(value, str | int | float | tuple)}
    one, two, three = ("a @ 1.00", "b @ 1.00", "b @ 2.00") if method.name in WITH_PRICES else "abc"
    offers = Assortments([(one, two, "none"), (one, three, "none"), (two, three, "none")])
    kind(**plain).model(Task(offers, ChoiceCounts(offers, [3, 2, 1, 2, 2, 2, 1, 2, 3])))
