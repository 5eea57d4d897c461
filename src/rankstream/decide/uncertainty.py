"""How sure a decision is: intervals of its value and of its lead over the runner-up, by a bootstrap."""

from dataclasses import replace
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.decision import Decision, Lead
from rankstream.decide.valuing import values
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.rankings import RankingModel

REPLICATES = 50
METHODS: dict[type, str] = {
    RankingModel: "nearest",
    EntropyModel: "max-entropy",
    LogitModel: "mnl",
    LatentClassModel: "latent-class",
    MarkovChainModel: "markov-chain",
}
"""How a model of each kind is fitted again."""


def bootstrap_of(model: Any, counts: ChoiceCounts, seed: int = 0, watch: Watch = unwatched) -> Bootstrap | None:
    """Models like this one, fitted to choices simulated from it; None where whoever watches has had enough first."""
    method = METHODS.get(type(model))
    if method is None:
        raise ValueError(f"It is not known how a {type(model).__name__} is fitted: give a Bootstrap instead of counts.")

    def asked(done: int, total: int) -> None:
        if watch(f"refitted {done} of {total} times"):
            raise _EnoughError

    try:
        return Bootstrap(counts, method, REPLICATES, seed, model=model, watch=asked)
    except _EnoughError:
        return None


class _EnoughError(Exception):
    """Ends a bootstrap between two refits: a few refits are not an interval."""


def with_interval(
    found: Decision,
    counts: ChoiceCounts | Bootstrap,
    interval: float = 0.95,
    seed: int = 0,
    top: int = 1,
    watch: Watch = unwatched,
) -> Decision:
    """The decision with intervals: value -+ z * sqrt(se^2 + shift^2), as those of predicted shares.

    The offer is held fixed, as it will be made. A lead whose interval contains 0 is noise: the data do not show which
    of the two offers is better. Where whoever watches has had enough before the last refit, there is no interval.
    """
    from scipy.special import ndtri

    problem, kept = found.problem, found.runners_up[: max(1, top - 1)]
    many = counts if isinstance(counts, Bootstrap) else bootstrap_of(problem.model, counts, seed, watch)
    if many is None:
        return replace(found, runners_up=kept)
    if set(many.model.items) != set(problem.items):
        raise ValueError("The counts are over other items than the model: give those that it was fitted to.")
    z = float(ndtri(0.5 + 0.5 * interval))
    offers = [found.held]
    for runner in found.runners_up[:1]:
        inside = set(runner.offer)
        offers.append(np.array([item in inside for item in problem.items]))
    table = np.array([values(problem, offers, model) for model in many.models])
    worth = np.array([found.value, *(runner.value for runner in found.runners_up[:1])])
    reach = z * spread(table[:, 0], worth[0])
    lead = None
    if len(offers) > 1:
        ahead = float(worth[0] - worth[1])
        far = z * spread(table[:, 0] - table[:, 1], ahead)
        lead = Lead(ahead, ahead - far, ahead + far)
    ends = (found.value - reach, found.value + reach)
    return replace(found, interval=ends, lead=lead, runners_up=kept)


def spread(replicates: Vec, value: float) -> float:
    """The replicates' standard deviation, with the distance of their mean from the value as a bias."""
    return float(np.hypot(replicates.std(ddof=1), replicates.mean() - value))
