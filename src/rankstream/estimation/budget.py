"""Fit within a budget of CPU seconds, and return the best model so far with its certificate."""

from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from math import inf
from typing import Any

from rankstream._core import Deadline, Progress, interrupts, number_between, thread_seconds
from rankstream.columns.corrective import is_slow
from rankstream.data import Assortments, ChoiceCounts
from rankstream.estimation.errors import store_errors
from rankstream.estimation.estimate import run_task
from rankstream.estimation.methods import METHODS, WITH_PRICES, Method, Nearest, PrimalDual, make, pick
from rankstream.estimation.task import Task
from rankstream.models.base import Model
from rankstream.solver.runs import Estimate

DEFAULT_SECONDS, DEFAULT_SLOW_SECONDS = 600.0, 60.0
"""CPU seconds of ``nearest`` and ``primal-dual`` without a budget; the second for slow oracles. Not tuned."""


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
