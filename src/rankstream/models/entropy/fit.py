"""Fit the maximum-entropy model: the one nearest to a prior among those that fit the data up to noise."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, until, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.entropy.ensemble import QUICK_GUIDES, Stack, fit_quick_stack, fit_stack
from rankstream.models.entropy.guides import with_attributes
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.new_items import check_rows
from rankstream.models.entropy.pool import PoolGuide, guides_with
from rankstream.models.entropy.ranking_laws import MAX_STATES, RankingLaw, SampledLaw
from rankstream.models.entropy.soft_lattice import SoftLattice, program_of
from rankstream.models.entropy.trust import Curvature, TiltProblem, choose_trust, tilt_weights
from rankstream.models.lifts import chains_of
from rankstream.models.rankings import RankingModel
from rankstream.oracles.tables.lattice import TooManyUnionsError

TRUST = 30.0  # for priors that are not weighed on held-out offers; that of version 0.2
SAMPLES = 20_000  # rankings where the program is too large: standard errors of shares of at most 0.004; not tuned
CURVATURE_SAMPLES = 1000  # two or three steps to a gap of 0.01 nats; 3,000 save a step, but take longer
QUICK_STATES = 2**13  # of a program that choosing the trust runs dozens of times


@dataclass(frozen=True, eq=False)
class EntropyFit:
    """A fitted model with its duality gap.

    Attributes
    ----------
    model : EntropyModel or RankingModel
        The model; of sampled rankings if ``approximate``.
    assortments : Assortments
        The offers with observations.
    duals, fitted : array
        The tilt and the model's probability of every coordinate of those offers.
    gap : float
        How far, in nats, the objective can be from its optimum over all rankings (if ``approximate``, over the sampled
        ones), for this prior.
    evaluations : int
        Number of runs of the program.
    converged : bool
        Whether the gap met the tolerance.
    approximate : bool
        Whether rankings were sampled because the exact program is too large.
    trust : float or None
        The factor of the sampling variance: the larger, the closer the model stays to the prior. None: no tilt.
    stack : Stack or None
        The guides and their weights, for a prior chosen on held-out offers.
    trusts : dict
        The score of each trust that was tried, on held-out offers and choices.
    """

    model: EntropyModel | RankingModel
    assortments: Assortments
    duals: Vec
    fitted: Vec
    gap: float
    evaluations: int
    converged: bool
    approximate: bool
    trust: float | None = TRUST
    stack: Stack | None = None
    trusts: dict[str, float] = field(default_factory=dict)

    def curvature(self, counts: ChoiceCounts, seed: int = 0) -> Curvature | None:
        """Sample the curvature for refits to similar counts; None without an exact program."""
        offers = counts.assortments
        if self.trust is None or not isinstance(self.model, EntropyModel) or self.model.items != offers.items:
            return None
        vertices = [offers.vertex(order) for order in self.model.prior.sample(CURVATURE_SAMPLES, seed)]
        return Curvature(np.array(vertices), tilt_weights(counts, self.model.prior, self.trust))

    def describe(self) -> dict[str, Any]:
        """Return what its predictions rest on, as JSON values."""
        content: dict[str, Any] = {"adjustment": self.trust, "approximate": self.approximate}
        if self.stack is not None:
            content |= self.stack.describe()
        if self.trusts:
            content["held_out_by_adjustment"] = self.trusts
        return content


def fit_max_entropy(
    counts: ChoiceCounts,
    prior: RankingLaw | Stack | PoolGuide | Literal["held-out", "default", "stacked"] = "held-out",
    *,
    trust: float | Literal["auto"] | None = "auto",
    tolerance: float = 1e-3,
    max_rounds: int = 1000,
    start: EntropyFit | None = None,
    curvature: Curvature | None = None,
    seed: int = 0,
    watch: Watch = unwatched,
    attributes: Attributes | None = None,
) -> EntropyFit:
    """Minimise ``log E_prior exp(-<y, a>) + <p, y> + trust / 2 * sum(y^2 * 10 q / K)`` over y.

    K counts an offer's choices, and q is the prior's share. That is the dual of: stay near the prior (in
    Kullback-Leibler divergence) while the squared errors, in units of ``trust`` times their sampling variance, stay
    small. A dynamic program computes the expectation exactly. If it is too large, rankings sampled from the prior
    replace it, and the fit is ``approximate``. If the offers have an order made of chains, such as price levels, all
    rankings respect it.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices; offers without any are left out.
    prior : RankingLaw, Stack, PoolGuide or str
        ``"held-out"`` fits guides and weights them by their predictions of held-out offers (``fit_stack``); a
        PoolGuide joins them. ``"default"`` mixes 0.1 logit, 0.45 latent classes and 0.45 Markov chain; ``"stacked"``
        weights these three.
    trust : float, "auto" or None
        ``"auto"`` chooses it on held-out offers and choices (30 for other priors); None keeps the prior as it is.
    tolerance : float
        The duality gap, in nats, at which the fit stops.
    max_rounds : int
        Maximum number of runs of the program.
    start : EntropyFit, optional
        An earlier fit to the same offers, for example of a stream.
    curvature : Curvature, optional
        The curvature of a fit to similar counts (``EntropyFit.curvature``).
    seed : int
        Seed of folds, random starts and sampled rankings.
    watch : Watch
        Stops the fit at the point with the least gap so far; half the time is for the prior, a fifth for sampling.
    attributes : Attributes, optional
        Attributes of the items, for the prior ``"held-out"``: guides with part-worths join, the Markov chain leaves.
        Or those behind a Stack, for new items.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    >>> found = fit_max_entropy(counts)
    >>> found.converged, found.gap <= 1e-3
    (True, True)
    >>> {item: round(share, 2) for item, share in found.model.predict(("pie", "no")).items()}
    {'pie': 0.5..., 'no': 0.4...}
    """
    if trust not in ("auto", None):
        number_between("trust", trust, 1e-9)
    number_between("tolerance", tolerance, 0.0)
    whole_number("max_rounds", max_rounds, least=1)
    data = observed(counts)
    if attributes is not None and not isinstance(prior, Stack):
        if prior != "held-out" and not isinstance(prior, PoolGuide):
            raise ValueError(f"Attributes need the prior 'held-out', not {prior!r}: leave out one of them.")
        check_rows(data.assortments, attributes)
    law_of, stack = _prior(data, prior, seed, until(watch, 0.5), attributes)
    offers = data.assortments
    trusts: dict[str, float] = {}
    quick = trust == "auto" and stack is not None and not offers.order
    most_states = QUICK_STATES if quick else MAX_STATES
    program = None if trust is None else _program(offers, law_of, most_states)
    if trust == "auto":
        trust, trusts = (TRUST, {}) if stack is None else choose_trust(stack, data, program, seed, until(watch, 0.7))
    stack = None if stack is None else replace(stack, folds=())
    if trust is None:  # the prior as it is, of any size: its probabilities need no program
        duals = np.zeros(offers.n_coordinates)
        model = EntropyModel(law_of, offers, duals, attributes)
        found = EntropyFit(model, offers, duals, model.probabilities(offers), 0.0, 1, True, False, None, stack, trusts)
    else:
        begin = start.duals if start is not None and start.assortments == offers else np.zeros(offers.n_coordinates)
        law = program or SampledLaw(offers, law_of, SAMPLES, seed, until(watch, 0.8))
        problem = TiltProblem(law, data.frequencies(), tilt_weights(data, law_of, trust), tolerance, watch)
        problem.solve(begin, max_rounds, curvature)
        duals = problem.duals
        found = EntropyFit(
            law.model(duals) if isinstance(law, SampledLaw) else EntropyModel(law_of, offers, duals, attributes),
            offers, duals, problem.fitted, problem.gap, problem.evaluations,
            problem.gap <= tolerance, program is None, trust, stack, trusts,
        )  # fmt: skip
    found.model.note(prediction=found.describe())
    return found


def _program(offers: Assortments, prior: RankingLaw, most_states: int) -> SoftLattice | None:
    try:
        return program_of(offers, prior, most_states)
    except TooManyUnionsError:
        return None


def _prior(
    data: ChoiceCounts, prior: RankingLaw | Stack | PoolGuide | str, seed: int, watch: Watch, table: Attributes | None
) -> tuple[RankingLaw, Stack | None]:
    if isinstance(prior, RankingLaw):
        return prior, None
    chains_of(data.assortments)  # raises a ValueError for other orders
    if data.assortments.order and prior in ("default", "stacked"):
        raise ValueError(
            "With an order of the items, such as price levels, the prior must be 'held-out', a RankingLaw or a Stack."
        )
    if isinstance(prior, Stack):
        return prior.prior, prior
    if isinstance(prior, PoolGuide) or prior == "held-out":
        guides = guides_with(prior, data, table) if isinstance(prior, PoolGuide) else with_attributes(table)
        stack = fit_stack(data, guides, seed, watch)
        return stack.prior, stack
    if prior == "default":
        return fit_quick_stack(data, seed, watch).prior, None
    if prior == "stacked":
        return fit_stack(data, QUICK_GUIDES, seed, watch).prior, None
    raise ValueError(f"Unknown prior {prior!r}: give a RankingLaw, 'held-out', 'default' or 'stacked'.")
