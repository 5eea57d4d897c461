"""RankingEstimator: the scikit-learn interface."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rankstream._core import Codes, Label, Vec, number_between, whole_number
from rankstream.data import Assortments, ChoiceCounts, DecayingCounts
from rankstream.estimation.intervals import Bootstrap
from rankstream.estimation.methods import MaxEntropy, Method, PrimalDual, make, pick
from rankstream.estimation.rows import (
    AvailabilityRows,
    align,
    as_array,
    column_names,
    count_availability,
    row_weights,
    sorted_order,
)
from rankstream.estimation.task import Task
from rankstream.solver.runs import Run
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.runs.endless import catch_up


class RankingEstimator(AvailabilityRows, BaseEstimator):  # type: ignore[misc]
    """A non-parametric choice model as a scikit-learn estimator.

    ``X`` is a 0/1 availability matrix, one row per choice and one column per item (the columns of a DataFrame, else 0,
    1, ...). ``y`` are the chosen items or, if the columns are not numbers, their positions. Any number other than 0
    counts as available, with a warning. If columns have no names, the position after the last column means "none of
    these", a no-purchase option that is always available; this also gives a warning.

    ``partial_fit`` plays rounds of the paper's solver on all choices so far, with the distance and learner of a
    ``methods.PrimalDual`` if that is the method, else the defaults. New offers are added. With "auto" and "max-entropy"
    the model is of maximum entropy from 50 choices on; the rounds then provide the lower bound of its certificate.

    Fitted: ``model_``, ``method_`` (the settings that were used), ``certificate_``, ``n_rounds_``, ``converged_``,
    ``items_`` in the order of the columns of X, ``classes_`` (the same, sorted: the columns of ``predict_proba``),
    ``counts_``.

    Parameters
    ----------
    method : str or settings
        As for ``estimate``: "auto", a name, or settings such as ``methods.MaxEntropy(prior="stacked")``.
    outside : "auto" or "refuse"
        Whether a choice one past the last column means "none of these", or is an error.
    epsilon : float
        The share of a uniform choice that ``score`` mixes in, as sparse models give some items probability 0.
    random_state : int, RandomState or None
        Ties between rankings, and the random starts of priors.
    half_life : float, optional
        Number of later choices after which a choice counts half; rows must then be in order of time.
    new_items : "refuse" or "add"
        Whether ``partial_fit`` accepts new named columns; items whose columns are missing are kept.
    rounds_per_batch : int
        Maximum number of rounds in a ``partial_fit``.
    memory : int
        Maximum weight of all earlier rounds, in rounds, so that the model follows data that change.

    Examples
    --------
    >>> X, y = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1]], [0, 1, 1, 1]
    >>> RankingEstimator(method="nearest").fit(X, y).predict_proba([[1, 1, 0]]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    n_features_in_: int
    model_: Any
    method_: Method
    _coded_model: Any
    _run: Run | None
    _follower: EntropyFollower | None = None
    _refit: str | Method
    _bootstrap: Bootstrap | None

    def __init__(
        self,
        method: str | Method = "auto",
        outside: Literal["auto", "refuse"] = "auto",
        epsilon: float = 1e-3,
        random_state: Any = 0,
        half_life: float | None = None,
        new_items: Literal["refuse", "add"] = "refuse",
        rounds_per_batch: int = 100,
        memory: int = 1000,
    ) -> None:
        self.method = method
        self.outside = outside
        self.epsilon = epsilon
        self.random_state = random_state
        self.half_life = half_life
        self.new_items = new_items
        self.rounds_per_batch = rounds_per_batch
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the model from all choices."""
        self._start()
        self._follower = None
        counts, _ = count_availability(*self._read(X, y, sample_weight, reset=True), make=self._counts)
        task = Task(counts.assortments, counts, self._seed())
        self.method_ = make(self.method) or pick(task)
        self._run = self.method_.play(task) if isinstance(self.method_, PrimalDual) else None
        fit = self.method_.fit(task) if self._run is None else self._run.result()
        self._keep(counts, fit.model, self.items_)
        self.certificate_, self.n_rounds_, self.converged_ = fit.certificate, fit.rounds, fit.converged
        self._refit = self.method_
        return self

    def _keep(self, counts: ChoiceCounts, model: Any, items: list[Label]) -> None:
        self.counts_, self._coded_model, self.items_ = counts, model, items
        self.model_ = model.relabel(items)
        self._bootstrap = None

    def _seed(self) -> int:
        seed = self.random_state
        return int(seed) if isinstance(seed, int | np.integer) else int(check_random_state(seed).randint(2**31 - 1))

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Add choices to those seen before and play up to ``rounds_per_batch`` rounds on all of them.

        New offers are added, and with ``new_items="add"`` new items as well. The certified gap stays valid; the
        learner's regret bound starts anew.
        """
        first = not hasattr(self, "model_")
        if first:
            self._start()
        rows = self._read(X, y, sample_weight, reset=first)
        names, named = column_names(X)
        items = list(dict.fromkeys([*self.items_, *names])) if self._aligns(named) else self.items_
        if rows[0].shape[1] > len(items):
            outside = len(self.items_)
            raise ValueError(f"Position {outside}, no column of X, did not occur in y of the first batch: fit again.")
        counts, _ = count_availability(*rows, before=None if first else self.counts_, make=self._counts)
        self._play(counts, items, len(rows[1]))
        if len(items) > self.n_features_in_ and hasattr(self, "feature_names_in_"):
            self.n_features_in_, self.feature_names_in_ = len(items), as_array(items).astype(object)
        return self

    def _play(self, counts: ChoiceCounts, items: list[Label], arrived: int) -> None:
        """Play rounds on the counts, with the run so far or a new one, and keep the result.

        Unless another method was requested, the model is of maximum entropy (``EntropyFollower``). The weights of
        offers follow the batches if the distance and the learner support that; else offers have equal weights, because
        the weights of the first batch would be wrong for later ones.
        """
        method = make(self.method)
        played = method if isinstance(method, PrimalDual) else PrimalDual()
        run = getattr(self, "_run", None)
        if run is None:
            run = replace(played, weights="equal").start(Task(counts.assortments, counts, self._seed()))
        catch_up(run, counts, self.memory, weigh=isinstance(played.distance, str) and played.weights == "observations")
        target = counts.target()
        for _ in range(self.rounds_per_batch):
            if run.advance(target) and run.last["latest_mae"] <= played.tolerance_mae:
                break
        self._run, self.method_, self._refit = run, played, "nearest"
        self.certificate_, model = run.solver.certificate(run.state, target), None
        if method is None or isinstance(method, MaxEntropy):
            self._follower = self._follower or EntropyFollower(self._seed())
            self._follower.follow(counts, arrived)
            if self._follower.knows(counts.assortments):
                model = self._follower.model
                self.certificate_ = self._follower.certify(self.certificate_, run.solver.distance, counts)
                self.method_ = self._refit = method or MaxEntropy()
        self._keep(counts, model or run.solver.model(run.state), items)
        self.n_rounds_, self.converged_ = run.state.round, run.converged

    def predict_proba(self, X: Any) -> Vec:
        """Return choice probabilities: a row per offer, a column per entry of ``classes_``; 0 if unavailable."""
        return self._shares(X)[:, sorted_order(self.items_)]

    def _shares(self, X: Any) -> Vec:
        offers, row_of = self._offers(X)
        table = self._table(offers, self._coded_model.probabilities(offers))
        table /= table.sum(axis=1, keepdims=True)
        return table[row_of]

    def predict_interval(self, X: Any, interval: float = 0.95, replicates: int = 100) -> tuple[Vec, Vec]:
        """Return the low and the high ends of intervals around ``predict_proba``, by a bootstrap (``Bootstrap``).

        The first call after a fit refits the model to simulated choices, ``replicates`` times; later calls are quick.
        All choices must count the same: no ``half_life``, no fractional weights.
        """
        offers, row_of = self._offers(X)
        if self._bootstrap is None or len(self._bootstrap.models) != replicates:
            self._bootstrap = Bootstrap(self.counts_, self._refit, replicates, self._seed(), model=self._coded_model)
        _, low, high = self._bootstrap.bounds(offers, interval)
        order = sorted_order(self.items_)
        return self._table(offers, low)[row_of][:, order], self._table(offers, high)[row_of][:, order]

    def _offers(self, X: Any) -> tuple[Assortments, Codes]:
        """Return the distinct offers among the rows, as numbers of items, and the offer of each row."""
        check_is_fitted(self, "model_")
        names, named = column_names(X)
        if self._aligns(named):
            matrix, _, _ = align(X, names, self.items_, may_add=False)
            available = self._available(matrix, False)
        elif names and names != self.items_[: len(names)]:
            validate_data(self, X, reset=False)
            raise ValueError(f"The columns {names} of X are not those of the fit, {self.items_}: use the same items.")
        else:
            available = self._available(validate_data(self, X, reset=False), self._outside)
        rows, row_of = np.unique(available, axis=0, return_inverse=True)
        offers = Assortments([np.flatnonzero(row).tolist() for row in rows], range(len(self.items_)))
        return offers, row_of.ravel()

    def _table(self, offers: Assortments, values: Vec) -> Vec:
        table = np.zeros((offers.n_offers, len(self.items_)))
        table[offers.owner, offers.members] = values
        return table

    def predict(self, X: Any) -> Any:
        """Return the likeliest choice of every row: column names, or positions where columns have no names."""
        best = self._shares(X).argmax(axis=1)
        return as_array(self.items_)[best]

    def log_likelihood(self, X: Any, y: Any, epsilon: float = 0.0) -> Vec:
        """Return the log-probability of every choice, with ``epsilon`` of the uniform distribution mixed in."""
        check_is_fitted(self, "model_")
        number_between("epsilon", epsilon, 0.0, 1.0)
        available, chosen, _ = self._read(X, y, None, reset=False)
        shares = np.zeros(available.shape)
        known = self._shares(X)
        shares[:, : known.shape[1]] = known
        mixed = (1.0 - epsilon) * shares[np.arange(len(chosen)), chosen] + epsilon / available.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs: Vec = np.log(mixed)
        return logs

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the choices; see ``epsilon``."""
        logs = self.log_likelihood(X, y, self.epsilon)
        return float(np.average(logs, weights=row_weights(sample_weight, X)))

    def _start(self) -> None:
        number_between("epsilon", self.epsilon, 0.0, 1.0)
        if self.half_life is not None:
            number_between("half_life", self.half_life, 1e-300)
        make(self.method)
        if self.new_items not in ("refuse", "add"):
            raise ValueError(f"new_items is {self.new_items!r}: choose 'refuse' or 'add'.")
        for name in ("rounds_per_batch", "memory"):
            whole_number(name, getattr(self, name), least=1)
        if self.outside not in ("auto", "refuse"):
            raise ValueError(f"outside is {self.outside!r}: choose 'auto' or 'refuse'.")

    def _counts(self, assortments: Assortments) -> ChoiceCounts:
        return ChoiceCounts(assortments) if self.half_life is None else DecayingCounts(assortments, self.half_life)

    @property
    def classes_(self) -> Any:
        """The items, sorted: the columns of ``predict_proba``, as scikit-learn's own scorers take them."""
        return as_array(self.items_)[sorted_order(self.items_)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
