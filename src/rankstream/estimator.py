"""RankingChoiceModel: the scikit-learn face of the library."""

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rankstream._types import Codes, Label, Mask, Vec
from rankstream.assortments import Assortments, plain
from rankstream.distances import Distance
from rankstream.estimation import Run, Stop, make_solver
from rankstream.learners import Learner
from rankstream.observations import count_availability
from rankstream.oracles import Ties


class RankingChoiceModel(BaseEstimator):  # type: ignore[misc]
    """A non-parametric choice model as a scikit-learn estimator.

    ``X`` is a 0/1 availability matrix, one row per choice and one column per item (a DataFrame's column names are the
    items, else they are 0, 1, ...), and ``y`` holds the chosen items, or the positions of their columns. Any other
    number than 0 counts as available, with a warning. With unnamed columns, one position past the last column means
    "none of these": an outside option that is always available and gets the last column of ``predict_proba``.

    A sparse model gives some items probability 0. ``score`` therefore mixes in ``epsilon`` of the uniform distribution
    over each offer; ``log_likelihood`` has the raw value (``epsilon=0``), which may be minus infinity.

    Fitted: ``model_`` (a RankingModel), ``rankings_``, ``weights_``, ``certificate_``, ``n_rounds_``, ``converged_``,
    ``items_``, ``counts_``.

    >>> X, y = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1]], [0, 1, 1, 1]
    >>> RankingChoiceModel().fit(X, y).predict_proba([[1, 1, 0]]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    def __init__(
        self,
        distance: str | Distance = "l2",
        learner: str | Learner[Any] = "mirror-descent",
        tolerance: float = 1e-3,
        stop: Stop = "mae",
        max_rounds: int = 10_000,
        rounds_per_batch: int = 100,
        ties: Ties = "random",
        outside: Literal["auto", "refuse"] = "auto",
        epsilon: float = 1e-3,
        random_state: int = 0,
    ) -> None:
        self.distance = distance
        self.learner = learner
        self.tolerance = tolerance
        self.stop = stop
        self.max_rounds = max_rounds
        self.rounds_per_batch = rounds_per_batch
        self.ties = ties
        self.outside = outside
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Estimate the model from all choices, until the tolerance is met or ``max_rounds`` are played."""
        self._start()
        self.counts_, _ = count_availability(*self._read(X, y, sample_weight, reset=True))
        self._play(self.max_rounds, anew=True)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Add choices to those seen before and play ``rounds_per_batch`` rounds on all of them.

        The items must stay the same. Offers that are new start the solver anew on the counts so far.
        """
        first = not hasattr(self, "model_")
        if first:
            self._start()
        rows = self._read(X, y, sample_weight, reset=first)
        self.counts_, grew = count_availability(*rows, before=None if first else self.counts_)
        self._play(self.rounds_per_batch, anew=grew)
        return self

    def predict_proba(self, X: Any) -> Vec:  # noqa: N803
        """The choice probability of every item in every row; unavailable items have 0."""
        check_is_fitted(self, "model_")
        available = self._available(validate_data(self, X, reset=False), self._has_outside)
        offers, row_of = np.unique(available, axis=0, return_inverse=True)
        single = Assortments([np.flatnonzero(offer).tolist() for offer in offers], range(len(self.items_)))
        table = np.zeros(offers.shape)
        table[single.owner, single.members] = self._coded_model.probabilities(single)
        return table[row_of.ravel()]

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest choice of every row: column names, or positions where columns have no names."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.array(self.items_)[best]

    def log_likelihood(self, X: Any, y: Any, epsilon: float = 0.0) -> Vec:  # noqa: N803
        """The log-probability of every choice, with ``epsilon`` of the uniform distribution mixed in."""
        check_is_fitted(self, "model_")
        available, chosen, _ = self._read(X, y, None, reset=False)
        rows = np.arange(len(chosen))
        raw = self.predict_proba(X)[rows, chosen]
        mixed = (1.0 - epsilon) * raw + epsilon / available.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs: Vec = np.log(mixed)
        return logs

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:  # noqa: N803
        """The mean log-likelihood of the choices; see ``epsilon``."""
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.log_likelihood(X, y, self.epsilon), weights=weight))

    def _start(self) -> None:
        if not 0.0 <= self.epsilon < 1.0:
            raise ValueError(f"epsilon is {self.epsilon}: it must be at least 0 and below 1.")
        if self.outside not in ("auto", "refuse"):
            raise ValueError(f"outside is {self.outside!r}: choose 'auto' or 'refuse'.")
        if min(self.max_rounds, self.rounds_per_batch) < 1:
            raise ValueError("max_rounds and rounds_per_batch must be at least 1.")

    def _read(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Mask, Codes, Vec]:  # noqa: N803
        """Checked rows: which items were available, which one was chosen, and how much each row counts."""
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        matrix = validate_data(self, X, reset=reset)
        chosen = np.asarray(y)
        if chosen.shape != matrix.shape[:1]:
            raise ValueError(
                f"y must have one choice for each of the {len(matrix)} rows of X; its shape is {chosen.shape}."
            )
        names = [plain(name) for name in getattr(self, "feature_names_in_", range(matrix.shape[1]))]
        position = {name: column for column, name in enumerate(names)}
        codes = np.array([_column(row, plain(label), position, len(names)) for row, label in enumerate(chosen)])
        has_outside = bool((codes == len(names)).any())
        if has_outside and (self.outside == "refuse" or hasattr(self, "feature_names_in_")):
            row = int(np.argmax(codes == len(names)))
            raise ValueError(f"Row {row}: unknown item {chosen[row]!r}, X has {len(names)} columns.")
        if reset:
            self._has_outside = has_outside
            self.items_ = [*names, len(names)] if has_outside else names
        elif has_outside and not self._has_outside:
            raise ValueError(
                f"Position {len(names)} (none of these) was not among the choices before: fit again with it."
            )
        available = self._available(matrix, self._has_outside)
        missing = np.flatnonzero(~available[np.arange(len(codes)), codes])
        if missing.size:
            row = int(missing[0])
            raise ValueError(f"Row {row}: the choice {self.items_[codes[row]]!r} is not in its offer: correct X or y.")
        weight = _check_sample_weight(sample_weight, matrix, dtype=np.float64, ensure_non_negative=True)
        if not weight.sum() > 0.0:
            raise ValueError("The sample weights are all zero: at least one choice must count.")
        return available, codes, weight

    def _available(self, matrix: Any, has_outside: bool) -> Mask:
        available: Mask = matrix != 0
        if not np.all((matrix == 0) | (matrix == 1)):
            warnings.warn("X holds other values than 0 and 1: every number but 0 counts as available.", stacklevel=3)
        if has_outside:
            available = np.column_stack([available, np.ones(len(available), dtype=bool)])
        empty = np.flatnonzero(~available.any(axis=1))
        if empty.size:
            raise ValueError(f"Row {empty[0]} of X offers nothing: every row needs an available item.")
        return available

    def _play(self, rounds: int, anew: bool) -> None:
        if anew:
            assortments, horizon = self.counts_.assortments, self.max_rounds
            solver = make_solver(assortments, self.distance, self.learner, None, self.ties, horizon, self.random_state)
            self._run = Run(solver, self.tolerance, self.stop)
        target = self.counts_.target()
        for _ in range(rounds):
            if self._run.advance(target):
                break
        result = self._run.result()
        self._coded_model = result.model
        self.model_ = type(result.model).from_codes(
            self.items_, result.model.orders, result.model.weights, result.model.no_choice
        )
        self.rankings_: list[tuple[Label, ...]] = self.model_.rankings
        self.weights_ = self.model_.weights
        self.certificate_ = result.certificate
        self.n_rounds_ = result.rounds
        self.converged_ = result.converged

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _column(row: int, label: Label, position: dict[Any, int], n_columns: int) -> int:
    """The column that a choice names: by its name, else by its position."""
    if label in position:
        return position[label]
    if isinstance(label, int | float) and label == int(label) and 0 <= label <= n_columns:
        return int(label)
    raise ValueError(f"Row {row}: unknown item {label!r}: it names none of the {n_columns} feature(s) of X.")
