"""RankingChoiceModel: the scikit-learn face of the library."""

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.forgetting import DecayingCounts
from rankstream.distances import Distance, observation_weights
from rankstream.estimation.entropy_estimate import EntropyModel, entropy_estimate
from rankstream.estimation.estimate import Method, Run, Stop
from rankstream.estimation.intervals import Bootstrap, Refit
from rankstream.estimation.rows import AvailabilityRows, align, as_array, column_names, count_availability, row_weights
from rankstream.learners import Learner
from rankstream.models.entropy.fit import has_small_program
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties
from rankstream.solver.make import make_solver
from rankstream.streams.reweighing import catch_up


class RankingChoiceModel(AvailabilityRows, BaseEstimator):  # type: ignore[misc]
    """A non-parametric choice model as a scikit-learn estimator.

    ``X`` is a 0/1 availability matrix, one row per choice and one column per item (a DataFrame's columns are the items,
    else they are 0, 1, ...), and ``y`` holds the chosen items, or, if the columns are not numbers, all their positions.
    Any other number than 0 counts as available, with a warning. Where columns have no names, the position one past the
    last column means "none of these", with a warning too (``outside="refuse"`` makes it an error): an outside option
    that is always available and gets the last column of ``predict_proba``.

    A sparse model gives some items probability 0. ``score`` therefore mixes in ``epsilon`` of the uniform distribution
    over each offer; ``log_likelihood`` has the raw value (``epsilon=0``), which may be minus infinity. Use ``score``,
    not scikit-learn's "neg_log_loss", which takes columns to be sorted.

    ``partial_fit`` plays ``rounds_per_batch`` rounds on all choices so far, and lets earlier rounds count for at most
    ``memory`` rounds, so that the model follows data that change. Offers that are new join those so far (``growth``).
    So do, with ``new_items="add"``, named columns that are new; items whose columns are missing are kept and not
    available. With a ``half_life``, a choice weighs half as much after so many later ones (``DecayingCounts``): rows
    then must be in order of time. ``certificate_`` is at the frequencies of ``counts_``. Mirror descent takes its step
    from the horizon ``max_rounds``: in a stream without an end, "dual-averaging" comes nearer (docs/methods.md).

    ``method="max-entropy"`` predicts best, ``"primal-dual"`` is the paper's sparse fit, and ``"auto"`` the first where
    its exact program is small and nothing that only the second has (distance, learner, stop, ties) is set.
    ``partial_fit`` always plays the second.

    Fitted: ``model_`` (an EntropyModel or a RankingModel), ``rankings_``, ``weights_``, ``certificate_``,
    ``n_rounds_``, ``converged_``, ``items_`` (also ``classes_``), ``counts_``.

    >>> X, y = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1]], [0, 1, 1, 1]
    >>> RankingChoiceModel(method="primal-dual").fit(X, y).predict_proba([[1, 1, 0]]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    n_features_in_: int
    model_: RankingModel | EntropyModel
    _coded_model: RankingModel | EntropyModel
    _run: Run | None
    _sparse: RankingModel | None
    _bootstrap: Bootstrap | None

    def __init__(
        self,
        distance: str | Distance = "l2",
        learner: str | Learner[Any] = "mirror-descent",
        tolerance: float = 1e-3,
        stop: Stop = "mae",
        max_rounds: int = 10_000,
        rounds_per_batch: int = 100,
        memory: int = 1000,
        ties: Ties = "random",
        outside: Literal["auto", "refuse"] = "auto",
        epsilon: float = 1e-3,
        random_state: Any = 0,
        half_life: float | None = None,
        new_items: Literal["refuse", "add"] = "refuse",
        method: Method = "auto",
    ) -> None:
        self.distance = distance
        self.learner = learner
        self.tolerance = tolerance
        self.stop = stop
        self.max_rounds = max_rounds
        self.rounds_per_batch = rounds_per_batch
        self.memory = memory
        self.ties = ties
        self.outside = outside
        self.epsilon = epsilon
        self.random_state = random_state
        self.half_life = half_life
        self.new_items = new_items
        self.method = method

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the model from all choices, until the tolerance is met or ``max_rounds`` are played."""
        self._start()
        counts, _ = count_availability(*self._read(X, y, sample_weight, reset=True), make=self._counts)
        if self.method == "max-entropy" or (self.method == "auto" and self._is_plain() and has_small_program(counts)):
            self._fit_densely(counts)
        else:
            self._play(counts, self.max_rounds, anew=True, weighted=isinstance(self.distance, str))
        return self

    def _is_plain(self) -> bool:
        """Whether nothing was set that only the paper's solver has."""
        return (self.distance, self.learner, self.stop, self.ties) == ("l2", "mirror-descent", "mae", "random")

    def _fit_densely(self, counts: ChoiceCounts) -> None:
        found = entropy_estimate(counts.assortments, counts, tolerance=self.tolerance, seed=self._seed())
        self.counts_, self._coded_model = counts, found.model
        if isinstance(found.model, EntropyModel):
            self.model_ = found.model.relabel(self.items_)
        else:
            self.model_ = RankingModel.from_codes(
                self.items_, found.model.orders, found.model.weights, found.model.no_choice_code
            )
        self.certificate_, self.n_rounds_, self.converged_ = found.certificate, found.rounds, found.converged
        self._sparse, self._run, self._bootstrap = None, None, None

    def _seed(self) -> int:
        seed = self.random_state
        return int(seed) if isinstance(seed, int | np.integer) else int(check_random_state(seed).randint(2**31 - 1))

    @property
    def rankings_(self) -> list[tuple[Label, ...]]:
        """The rankings of the model; those of ``to_rankings()`` where it is dense."""
        return self._as_rankings().rankings

    @property
    def weights_(self) -> Vec:
        """Their probabilities."""
        return self._as_rankings().weights

    def _as_rankings(self) -> RankingModel:
        check_is_fitted(self, "model_")
        if isinstance(self.model_, RankingModel):
            return self.model_
        if self._sparse is None:
            self._sparse = self.model_.to_rankings(seed=self._seed())
        return self._sparse

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Add choices to those seen before and play up to ``rounds_per_batch`` rounds on all of them.

        New offers join those so far; so do new items, if ``new_items="add"``. A certified gap stays valid when they do,
        while the learner's regret bound starts anew.
        """
        first = not hasattr(self, "model_")
        if first:
            self._start()
        rows = self._read(X, y, sample_weight, reset=first)
        items = self._items_with(X)
        if rows[0].shape[1] > len(items):
            outside = len(self.items_)
            raise ValueError(f"Position {outside}, none of these, was not among the first batch's choices: fit again.")
        counts, _ = count_availability(*rows, before=None if first else self.counts_, make=self._counts)
        self._play(counts, self.rounds_per_batch, anew=first, items=items)
        if len(items) > self.n_features_in_ and hasattr(self, "feature_names_in_"):
            self.n_features_in_, self.feature_names_in_ = len(items), as_array(items).astype(object)
        return self

    def predict_proba(self, X: Any) -> Vec:
        """The choice probability of every item in every row; unavailable items have 0."""
        offers, row_of = self._offers(X)
        return self._table(offers, self._coded_model.probabilities(offers))[row_of]

    def predict_interval(self, X: Any, interval: float = 0.95, replicates: int = 100) -> tuple[Vec, Vec]:
        """The low and the high ends of intervals around ``predict_proba``, by a bootstrap (``intervals.Bootstrap``).

        That refits the model to simulated choices, so many times, with the first call after a fit; more calls with as
        many replicates are quick. It needs choices that all count the same: no ``half_life``, no fractional weights.
        """
        offers, row_of = self._offers(X)
        if self._bootstrap is None or len(self._bootstrap.models) != replicates:
            method: Refit = "max-entropy" if self._run is None else "primal-dual"
            found = Bootstrap(self.counts_, method, replicates, self._seed(), model=self._coded_model)
            self._bootstrap = found
        _, low, high = self._bootstrap.bounds(offers, interval)
        return self._table(offers, low)[row_of], self._table(offers, high)[row_of]

    def _offers(self, X: Any) -> tuple[Assortments, Codes]:
        """The different offers among the rows, of item numbers, and which of them each row is."""
        check_is_fitted(self, "model_")
        names, named = column_names(X)
        if self._aligns(named):
            matrix, _, _ = align(X, names, self.items_, may_add=False)
            available = self._available(matrix, False)
        elif names and names != self.items_[: len(names)]:
            validate_data(self, X, reset=False)
            raise ValueError(f"The columns {names} of X are not those of the fit, {self.items_}: name the same items.")
        else:
            available = self._available(validate_data(self, X, reset=False), self._outside)
        rows, row_of = np.unique(available, axis=0, return_inverse=True)
        offers = Assortments([np.flatnonzero(row).tolist() for row in rows], range(len(self.items_)))
        return offers, row_of.ravel()

    def _table(self, offers: Assortments, values: Vec) -> Vec:
        """A row for each offer, with 0 for what is not in it."""
        table = np.zeros((offers.n_offers, len(self.items_)))
        table[offers.owner, offers.members] = values
        return table

    def predict(self, X: Any) -> Any:
        """The likeliest choice of every row: column names, or positions where columns have no names."""
        best = self.predict_proba(X).argmax(axis=1)
        return as_array(self.items_)[best]

    def log_likelihood(self, X: Any, y: Any, epsilon: float = 0.0) -> Vec:
        """The log-probability of every choice, with ``epsilon`` of the uniform distribution mixed in."""
        check_is_fitted(self, "model_")
        number_between("epsilon", epsilon, 0.0, 1.0)
        available, chosen, _ = self._read(X, y, None, reset=False)
        shares = np.zeros(available.shape)
        known = self.predict_proba(X)
        shares[:, : known.shape[1]] = known
        mixed = (1.0 - epsilon) * shares[np.arange(len(chosen)), chosen] + epsilon / available.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs: Vec = np.log(mixed)
        return logs

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The mean log-likelihood of the choices; see ``epsilon``."""
        logs = self.log_likelihood(X, y, self.epsilon)
        return float(np.average(logs, weights=row_weights(sample_weight, X)))

    def _start(self) -> None:
        number_between("epsilon", self.epsilon, 0.0, 1.0)
        if self.half_life is not None:
            number_between("half_life", self.half_life, 1e-300)
        if self.method not in get_args(Method):
            choices = ", ".join(map(repr, get_args(Method)))
            raise ValueError(f"There is no method {self.method!r}: choose one of {choices}.")
        if self.method == "max-entropy" and not self._is_plain():
            raise ValueError("Maximum entropy has no distance, learner, stop or ties: leave them as they are.")
        if self.new_items not in ("refuse", "add"):
            raise ValueError(f"new_items is {self.new_items!r}: choose 'refuse' or 'add'.")
        for name in ("max_rounds", "rounds_per_batch", "memory"):
            whole_number(name, getattr(self, name), least=1)
        if self.outside not in ("auto", "refuse"):
            raise ValueError(f"outside is {self.outside!r}: choose 'auto' or 'refuse'.")

    def _counts(self, assortments: Assortments) -> ChoiceCounts:
        return ChoiceCounts(assortments) if self.half_life is None else DecayingCounts(assortments, self.half_life)

    def _play(
        self, counts: ChoiceCounts, rounds: int, anew: bool, items: list[Label] | None = None, weighted: bool = False
    ) -> None:
        """Play rounds on the counts, with a new run or the one so far, and keep what comes out.

        ``weighted``: a distance given by name weighs offers by their observations, as in ``estimate``. In a stream of
        batches their weights change, which not all distances and learners can follow (``reweighing``).
        """
        run = self._run if not anew and self._run is not None else None
        if run is None:
            form, player, horizon = self.distance, self.learner, self.max_rounds
            kind: Literal["root", "share"] = "share" if form == "kl" else "root"
            weights = observation_weights(counts, kind) if weighted else None
            seed = self._seed()
            solver = make_solver(counts.assortments, form, player, None, self.ties, horizon, seed, weights=weights)
            run = Run(solver, self.tolerance, self.stop)
        catch_up(run, counts, self.memory, weigh=not anew and isinstance(self.distance, str))
        target = counts.target()
        if anew:
            run.advance_many(target, rounds)
        else:
            for _ in range(rounds):
                if run.advance(target) and run.last["latest_mae"] <= self.tolerance:
                    break
        model = run.solver.model(run.state)
        self.counts_, self._coded_model, self.items_ = counts, model, items or self.items_
        self._run, self._bootstrap = run, None
        self.model_ = RankingModel.from_codes(self.items_, model.orders, model.weights, model.no_choice_code)
        self.certificate_ = run.solver.certificate(run.state, target)
        self.n_rounds_ = run.state.round
        self.converged_ = run.converged

    @property
    def classes_(self) -> Any:
        """The items, in the order of the columns of ``predict_proba``."""
        return as_array(self.items_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
