"""Latent classes: a mixture of multinomial logits, one for each customer segment.

If the offers have an order made of chains, such as price levels, the demand of every class falls along the chains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import impossible_choices, observed, restrict
from rankstream.models.lifts import Chains, chains_of, closed_offers, frozen, lift, steps_down
from rankstream.models.parametric.base import Climb, Fitted, check_start, data_log_likelihood, fit_facts
from rankstream.models.parametric.mnl import fit_mnl, logit_shares, plackett_luce_orders

SMOOTHING = 0.5  # as in the logit
MIN_LEVEL_SHARE = 0.01  # of an item's attraction for each of its levels at the start of a fit
TRIED_CLASSES = (1, 2, 3, 4, 5, 6, 8, 10)  # by "cv"; more were not tried
CHUNK_STEPS = 300  # steps of EM between two checks of the watch
M = TypeVar("M", bound="MixtureModel")


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureModel(Fitted):
    """Classes of customers: ``mixture[k]`` is the share of class k."""

    mixture: Vec

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.mixture)

    def draw_classes(self, size: int, random: np.random.Generator) -> Codes:
        """Return the classes of independent customers."""
        return random.choice(self.n_classes, size=size, p=self.mixture / self.mixture.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentClassModel(MixtureModel):
    """A mixture of logits, one for each class of customers.

    It also has the attributes of ``Fitted``.

    Attributes
    ----------
    mixture : array
        ``mixture[k]`` is the share of class k.
    attraction : array
        ``attraction[k, i]`` is what item i is worth to class k; in a chain, beyond the next item of it.
    order : tuple of tuples of item codes
        The chains, best first: a price level is worth the attraction of itself and of all dearer levels of its item.
    heights : tuple of floats
        The objective at the points that the best start went through; it never falls.
    """

    FORMAT: ClassVar[str] = "rankstream-latent-class-model"
    ARRAYS: ClassVar[dict[str, str]] = {"mixture": "k", "attraction": "kn"}
    attraction: Vec
    order: Chains = ()
    heights: tuple[float, ...] = ()

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """Return the classes' probabilities, mixed."""
        return mixed_shares(self.mixture, self.attraction, indptr, members, self.order)

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Draw a class by its share, then from the top, in proportion to its attractions; lift to respect the order."""
        return lift(plackett_luce_orders(self.attraction[self.draw_classes(size, random)], random), self.order)

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file."""
        return super().to_content() | ({"order": [list(chain) for chain in self.order]} if self.order else {})

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described."""
        order = tuple(tuple(chain) for chain in content.get("order", ()))
        codes = [code for chain in order for code in chain]
        if not set(codes) <= set(range(len(content["items"]))) or len(set(codes)) < len(codes):
            raise ValueError("its order names an item twice, or an unknown one")
        return cls(**cls.fields_in(content), order=order)


def fit_latent_class(
    counts: ChoiceCounts,
    *,
    classes: int | Literal["cv"] = "cv",
    tried: Sequence[int] = TRIED_CLASSES,
    starts: int = 3,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-8,
    max_rounds: int = 3000,
    folds: int = 4,
    seed: int = 0,
    watch: Watch = unwatched,
    start: LatentClassModel | None = None,
) -> LatentClassModel:
    """Fit the mixture of logits of highest smoothed likelihood among several starts of an accelerated EM.

    The parameters are those of ``methods.LatentClass``, with ``tolerance`` for ``tolerance_nats``. Offers without
    choices are left out. If offers have an order made of chains, demand falls along them. "cv" holds out ``folds``
    parts of the offers in turn, with one start each. ``watch`` is called every few steps, and stops the fit if it
    returns True. ``start`` is a mixture fitted to similar counts: it is then the only start, and its number of classes
    is kept.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie"), ("pie", "cake"), ("tea", "cake"), ("tea", "pie", "cake")])
    >>> counts = ChoiceCounts(offers, [50, 50, 50, 50, 50, 50, 50, 0, 50])
    >>> fit = fit_latent_class(counts, classes=2)
    >>> fit.n_classes, {item: round(share, 1) for item, share in fit.predict(("tea", "pie", "cake")).items()}
    (2, {'tea': 0.5, 'pie': 0.0, 'cake': 0.5})
    >>> offers = Assortments([("tea @ 3", "no"), ("tea @ 4", "no")], order=[("tea @ 3", "tea @ 4")])
    >>> model = fit_latent_class(ChoiceCounts(offers, [500, 500, 600, 400]), classes=1)
    >>> {item: round(share, 2) for item, share in model.predict(("tea @ 4", "no")).items()}
    {'tea @ 4': 0.55, 'no': 0.45}
    """
    options = ClassOptions(starts, smoothing, tolerance, max_rounds, seed, watch, start)
    return fit_classes(counts, classes, tried, folds, options, _fit)


class ClassOptions(NamedTuple):
    """Options of a fit with a given number of classes; ``start`` is a model of its kind, or None."""

    starts: int
    smoothing: float
    tolerance: float
    max_rounds: int
    seed: int
    watch: Watch
    start: Any


Fit = Callable[[ChoiceCounts, int, ClassOptions], M]


def fit_classes(
    counts: ChoiceCounts, classes: int | str, tried: Sequence[int], folds: int, options: ClassOptions, fit: Fit[M]
) -> M:
    """Fit a given number of classes, that of the start, or the number that predicts best (``"cv"``)."""
    number_between("smoothing", options.smoothing, 1e-9)
    number_between("tolerance", options.tolerance, 0.0)
    whole_number("starts", options.starts, least=1)
    whole_number("max_rounds", options.max_rounds, least=1)
    data = observed(counts)
    check_start(data, options.start)
    if options.start is not None:
        return fit(data, options.start.n_classes, options)
    if classes != "cv":
        return fit(data, whole_number("classes", classes, least=1), options)
    sizes = sorted({whole_number("A number of classes to try", size, least=1) for size in tried})
    if not sizes:
        raise ValueError("There is no number of classes to try: give some, such as tried=(1, 2, 3).")
    several = data.assortments.n_offers > 1  # of one offer nothing can be held out
    return fit(data, _best_held_out(data, sizes, folds, options, fit) if several else sizes[0], options)


def _best_held_out(data: ChoiceCounts, sizes: Sequence[int], folds: int, options: ClassOptions, fit: Fit[M]) -> int:
    """Return the number of classes that predicts held-out offers best; stop after two falls in a row."""
    order = np.random.default_rng(options.seed).permutation(data.assortments.n_offers)
    parts = np.array_split(order, min(whole_number("folds", folds, least=2), len(order)))
    splits = [(restrict(data, np.setdiff1d(order, part)), restrict(data, part)) for part in parts]
    best, highest, fallen = sizes[0], -np.inf, 0
    for size in sizes:
        score = 0.0
        for rest, test in splits:
            model = fit(rest, size, options._replace(starts=1))
            score += data_log_likelihood(test, model.probabilities(test.assortments))
        fallen = 0 if score > highest else fallen + 1
        if score > highest:
            best, highest = size, score
        if fallen == 2 or options.watch(f"{size} classes tried"):
            break
    return best


def _fit(data: ChoiceCounts, classes: int, options: ClassOptions) -> LatentClassModel:
    offers = data.assortments
    logit = fit_mnl(data, smoothing=options.smoothing).attraction
    order = chains_of(offers)
    for chain in order:  # made to fall
        logit[list(chain)] = np.maximum.accumulate(logit[list(chain[::-1])])[::-1]
    worth = np.maximum(steps_down(logit, order), MIN_LEVEL_SHARE * logit)
    generator = np.random.default_rng(options.seed)
    problem, start = MixtureProblem(data, classes, options.smoothing), options.start
    limits = (options.tolerance * data.observations, options.max_rounds, options.watch, "latent classes")
    climbs: list[Climb] = []
    for number in range(1 if classes == 1 or start else options.starts):
        if number and options.watch(f"latent classes, start {number + 1}"):
            break
        drawn = problem.random_point(worth, generator)
        begin = drawn if start is None else problem.point(start.mixture, start.attraction)
        climbs.append(problem.climb(begin, *limits))
        if climbs[-1].stopped:
            break
    best = max(climbs, key=lambda end: end.heights[-1])
    mixture, attraction = problem.parts(best.point)
    attraction = np.ascontiguousarray(attraction.T)
    shares = mixed_shares(mixture, attraction, offers.indptr, offers.members, order)
    shares[impossible_choices(offers, data.tallies)] = 1.0  # they cost every model the same
    return LatentClassModel(
        **fit_facts(data, shares, sum(end.steps for end in climbs), best.converged),
        n_parameters=classes * offers.n_items - 1,
        mixture=mixture, attraction=attraction, order=order, heights=tuple(best.heights),
    )  # fmt: skip


def mixed_shares(mixture: Vec, attraction: Vec, indptr: Codes, members: Codes, order: Chains = ()) -> Vec:
    """Return the choice probabilities of a mixture of logits, classes by items, lifted to respect the order."""
    if order:
        closed = closed_offers(indptr, members, order)
        return closed.gather(mixed_shares(mixture, attraction, closed.indptr, closed.members), len(members))
    out = np.zeros(len(members))
    for share, row in zip(mixture.tolist(), attraction, strict=True):
        out += share * logit_shares(row, indptr, members)
    return out


class MixtureProblem:
    """The EM step of a mixture; a point is the mixture followed by the attractions, items by classes."""

    def __init__(self, data: ChoiceCounts, classes: int, smoothing: float) -> None:
        offers, tallies = data.assortments, np.ascontiguousarray(data.tallies)
        self.data = offers.indptr, offers.members, frozen([]), tallies
        if offers.order:
            closed = closed_offers(offers.indptr, offers.members, chains_of(offers))
            self.data = closed.indptr, closed.members, closed.of, tallies
        self.shape = offers.n_items, classes
        self.smoothing = smoothing

    def parts(self, point: Vec) -> tuple[Vec, Vec]:
        """Return the mixture and the attractions of a point."""
        return point[: self.shape[1]], point[self.shape[1] :].reshape(self.shape)

    def point(self, mixture: Vec, attraction: Vec) -> Vec:
        """Return the point of a mixture over the same items; attractions are classes by items."""
        return np.concatenate([mixture, attraction.T.ravel()])

    def random_point(self, logit: Vec, generator: np.random.Generator) -> Vec:
        """Return classes of equal size with the logit's attractions, randomised if there are several."""
        spread = generator.gumbel(size=self.shape) if self.shape[1] > 1 else np.zeros(self.shape)
        drawn = np.concatenate([np.ones(self.shape[1]), (logit[:, np.newaxis] * np.exp(spread)).ravel()])
        return self.normalise(drawn)

    def normalise(self, point: Vec) -> Vec:
        """Scale the mixture, and the attractions of each class, to sum to 1."""
        mixture, attraction = self.parts(point)
        return np.concatenate([mixture / mixture.sum(), (attraction / attraction.sum(axis=0)).ravel()])

    def climb(self, start: Vec, tolerance: float, max_rounds: int, watch: Watch, name: str) -> Climb:
        """Run EM with squared extrapolation until three steps gain at most the tolerance, or ``watch`` stops it."""
        from rankstream.models.parametric.climb_kernels import climb_mixture  # compiled, for fits alone

        mixture, attraction = (part.copy() for part in self.parts(start))
        heights, longest, done, stopped = [np.zeros(0)], 1.0, False, False
        used = 0
        while not done and not stopped and used < max_rounds:
            reached = np.empty(2 * (min(CHUNK_STEPS, max_rounds - used + 2) // 3))
            size, longest, done = climb_mixture(
                *self.data, self.smoothing, tolerance, mixture, attraction, longest, reached
            )
            heights.append(reached[:size])
            used += 3 * size // 2
            stopped = not done and watch(f"{name}, step {used:,}")
        point = np.concatenate([mixture, attraction.ravel()])
        return Climb(point, used, done, np.concatenate(heights).tolist(), stopped)
