"""Fitting within a budget of CPU seconds: the best model so far, with its certificate, whatever the size."""

from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from math import inf
from typing import Any

from rankstream._core.arguments import number_between
from rankstream._core.old_names import old_keywords
from rankstream._core.watch import Deadline, Progress, interrupts, thread_seconds
from rankstream.columns.corrective import is_slow
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.errors import store_errors
from rankstream.estimation.estimate import run_task
from rankstream.estimation.methods import METHODS, WITH_PRICES, Method, Nearest, PrimalDual, make, pick
from rankstream.estimation.task import Task
from rankstream.models.base import Model
from rankstream.solver.runs import Estimate

DEFAULT_SECONDS, DEFAULT_SLOW_SECONDS = 600.0, 60.0
"""CPU seconds of ``nearest`` and ``primal-dual`` without a budget, the second where oracles are slow; not tuned."""


@old_keywords(seconds="budget")
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

    The certificate is that of the l2 distance with offers weighed by their observations (of the method's own distance
    where that is another). It holds for whatever model there is. The same seed gives the same model unless the fit is
    cut short: where it stops then depends on the machine. ``Estimate.cut_short`` and ``model.about`` say so.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices.
    budget : float, optional
        CPU seconds of the calling thread after which the fit ends with what it has: what else runs on the machine does
        not matter. Single steps are not interrupted, such as making tables, and compiling does not count. Without it a
        fit ends by its own accuracy; ``nearest`` and ``primal-dual`` after 600 s, or 60 s where oracles are slow.
    method : str or settings
        As for ``estimate``.
    tolerance : float, optional
        When a method given by name is good enough, in its own unit.
    seed : int
        As for ``estimate``.
    watch : callable, optional
        Called with what is going on and how much of the budget is used.
    clock : callable
        Returns the CPU time in seconds.
    timeout : float, optional
        Seconds on the wall after which the fit ends as well.
    errors : bool
        Whether a model by maximum entropy remembers standard errors (``StoredErrors``); none where time is over.
    """
    most, longest = (
        inf if value is None else number_between(name, value, 0.0)
        for name, value in (("budget", budget), ("timeout", timeout))
    )
    with interrupts() as asked:
        deadline = Deadline(most, asked, watch, clock, longest)
        proving = copy(deadline)
        task = Task(counts.assortments, counts, seed, deadline, proving)
        chosen = make(method, tolerance) or pick(task, tolerance, budget)
        slow = is_slow(task.oracle)
        for part in (deadline, proving):
            if budget is None and isinstance(chosen, Nearest | PrimalDual):
                part.seconds = DEFAULT_SLOW_SECONDS if slow else DEFAULT_SECONDS
        found = run_task(task, chosen)
        if deadline.stopped and isinstance(found.model, Model):
            found.model.note(cut_short=True)
        elif errors:
            store_errors(found, counts, seed, lambda done, total: proving(f"refitting, {done} of {total}"))
        return replace(found, converged=found.converged and not deadline.stopped, cut_short=deadline.stopped)


def compile_first(method: Method) -> None:
    """Fit a market of three items, so that what has to be compiled is in the cache that all workers load from.

    Objects among the settings, such as an oracle or a prior, are for other offers and left out; methods of other
    people's making are not tried at all.
    """
    kind: Any = (METHODS | WITH_PRICES).get(method.name)
    if kind is None or not isinstance(method, kind):
        return
    values = {field.name: getattr(method, field.name) for field in fields(kind)}
    plain = {name: value for name, value in values.items() if isinstance(value, str | int | float | tuple)}
    one, two, three = ("a @ 1.00", "b @ 1.00", "b @ 2.00") if method.name in WITH_PRICES else "abc"
    offers = Assortments([(one, two, "none"), (one, three, "none"), (two, three, "none")])
    kind(**plain).model(Task(offers, ChoiceCounts(offers, [3, 2, 1, 2, 2, 2, 1, 2, 3])))
