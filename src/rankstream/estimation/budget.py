"""Fitting within a time budget: the best model so far, with its certificate, whatever the size of the data."""

from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from time import monotonic
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.watch import Deadline, interrupts
from rankstream.columns.column_search import Goal
from rankstream.columns.corrective import is_slow, search_and_prove
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.distances import L2
from rankstream.estimation.estimate import run_task
from rankstream.estimation.methods import METHODS, WITH_PRICES, Method, make, pick
from rankstream.estimation.task import Task
from rankstream.oracles import DenseOracle, SearchOracle
from rankstream.solver.runs import Estimate


def fit_within(
    counts: ChoiceCounts,
    seconds: float = 60.0,
    method: str | Method = "auto",
    tolerance: float | None = None,
    seed: int = 0,
    watch: Callable[[str, float], None] | None = None,
    clock: Callable[[], float] = monotonic,
) -> Estimate[Any]:
    """``estimate`` in about ``seconds`` seconds; Ctrl-C ends it early, with the model so far.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices.
    seconds : float
        Then the fit ends with what it has; single steps are not interrupted, such as making tables, and compiling
        does not count.
    method : str or settings
        As for ``estimate``.
    tolerance : float, optional
        When a method given by name is good enough, in its own unit.
    seed : int
        As for ``estimate``.
    watch : callable, optional
        Called with what is going on and how much of the budget is used.
    clock : callable
        Returns the time in seconds.

    The certificate is that of the l2 distance with offers weighed by their observations (of the method's own distance
    where that is another), and holds for whatever model there is. The same seed gives the same model unless the fit was
    cut short (``Estimate.cut_short``): where it ends then depends on the machine.

    """
    number_between("seconds", seconds, 0.0)
    with interrupts() as asked:
        deadline = Deadline(seconds, asked, watch, clock)
        task = Task(counts.assortments, counts, seed, deadline, copy(deadline))
        chosen = make(method, tolerance) or pick(task, tolerance)
        late = compile_first(chosen, clock, is_slow(task.oracle))
        deadline.start += late
        task.proving.start += late  # type: ignore[attr-defined]
        found = run_task(task, chosen)
        return replace(found, converged=found.converged and not deadline.stopped, cut_short=deadline.stopped)


def compile_first(method: Method, clock: Callable[[], float] = monotonic, slow: bool = False) -> float:
    """Fit a market of three items first, so that what has to be compiled or loaded is; returns how long that took.

    Where oracles are ``slow``, that is also what searches and proves.

    So a budget buys the same model with an empty compilation cache as with a full one. Objects among the settings, such
    as an oracle or a prior, are for other offers and left out; methods of other people's making are not tried at all.
    """
    began = clock()
    kind: Any = (METHODS | WITH_PRICES).get(method.name)
    if kind is None or not isinstance(method, kind):
        return clock() - began
    values = {field.name: getattr(method, field.name) for field in fields(kind)}
    plain = {name: value for name, value in values.items() if isinstance(value, str | int | float | tuple)}
    one, two, three = ("a @ 1.00", "b @ 1.00", "b @ 2.00") if method.name in WITH_PRICES else "abc"
    offers = Assortments([(one, two, "none"), (one, three, "none"), (two, three, "none")])
    kind(**plain).model(Task(offers, ChoiceCounts(offers, [3, 2, 1, 2, 2, 2, 1, 2, 3])))
    if slow:
        unlike = Target(np.array([0.9, 0.1, 0.0, 0.0, 0.1, 0.9, 0.9, 0.0, 0.1]))  # so that there is something to prove
        search_and_prove(L2(offers), unlike, SearchOracle(offers), Goal("gap", 0.0), 2)
        DenseOracle(offers, precision="single").cheapest(unlike.frequencies)
    return clock() - began
