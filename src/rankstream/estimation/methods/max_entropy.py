"""Maximum entropy as a method: the best predictor of new offers."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rankstream._core import number_between, until
from rankstream.data.attributes import AttributeSource, read_attributes
from rankstream.estimation.task import Task, estimate_of
from rankstream.models import ChoiceModel, EntropyFit, RankingLaw, fit_max_entropy
from rankstream.models.entropy.pool import PoolGuide
from rankstream.solver.runs import Estimate

FIT_PART = 0.9
"""The part of the time for the fit; the rest is for its certificate (``benchmarks/budget.py`` shows what both take)."""


@dataclass(frozen=True, kw_only=True)
class MaxEntropy:
    """The distribution over all rankings nearest to a prior among those that fit as well as noise allows.

    It predicts new offers best, and is the default if its exact program is small.

    Parameters
    ----------
    prior : "held-out", "default", "stacked", RankingLaw or PoolGuide
        The start of the fit, which decides where there are no data. ``"held-out"``: logit, latent classes of several
        sizes, normal taste, nests, Markov chain and uniform, weighted by how well they predict held-out offers. The
        other two are those of version 0.2: 0.1 logit, 0.45 latent classes and 0.45 Markov chain, or these three with
        fitted weights. If items have an order made of chains, such as price levels, the guides respect it (logits and
        latent classes with falling demand, with and without a price coefficient), and only ``"held-out"`` is allowed.
    trust : float, "auto" or None
        Allowed squared errors, as a multiple of the sampling variance: larger stays nearer to the prior, None keeps the
        prior. ``"auto"`` is chosen on the same held-out offers, and is 30 for other priors.
    tolerance_nats : float
        The duality gap at which the fit ends.
    max_rounds : int
        Maximum number of runs of the exact program.
    attributes : Attributes, mapping or path, optional
        Attributes of the items, as ``read_attributes`` takes them: base models with part-worths join the prior, and
        the model's ``with_items`` adds items that were never offered.
    """

    name: ClassVar[str] = "max-entropy"
    tolerance: ClassVar[str] = "tolerance_nats"
    prior: RankingLaw | PoolGuide | Literal["held-out", "default", "stacked"] = "held-out"
    trust: float | Literal["auto"] | None = "auto"
    tolerance_nats: float = 1e-3
    max_rounds: int = 1000
    attributes: AttributeSource | None = None

    def fit(self, task: Task) -> Estimate[Any]:
        """As ``Method`` says; a tenth of the time is for the certificate."""
        fit = self.entropy_fit(replace(task, watch=until(task.watch, FIT_PART)))
        return replace(estimate_of(fit.model, task, fit.evaluations, fit.converged), details=fit)

    def model(self, task: Task) -> ChoiceModel:
        """Fit; see ``Method``."""
        return self.entropy_fit(task).model

    def entropy_fit(self, task: Task) -> EntropyFit:
        """Return the fit, with the state that refits start from."""
        task.require_still(self.name)
        if task.assortments.n_items < 2:
            raise ValueError(f"The method {self.name!r} needs at least two items: use 'nearest', or let 'auto' pick.")
        return fit_max_entropy(
            task.counts,
            self.prior,
            trust=self.trust,
            tolerance=number_between("tolerance_nats", self.tolerance_nats, 0.0),
            max_rounds=self.max_rounds,
            seed=task.seed,
            watch=task.watch,
            attributes=None if self.attributes is None else read_attributes(self.attributes),
        )
