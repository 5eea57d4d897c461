"""What a stream serves: a maximum-entropy model of its counts, refreshed as choices come, beside its sparse run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rankstream._core import Vec, Watch, until, unwatched
from rankstream._core.threads import one_blas_thread
from rankstream.certificate import Certificate
from rankstream.data import Assortments, Attributes, ChoiceCounts, observed
from rankstream.distances import Distance
from rankstream.models import EntropyFit, EntropyModel, LatentClassModel, LogitModel, MarkovChainModel, fit_max_entropy
from rankstream.models.base import finite_array
from rankstream.models.entropy.ensemble import Stack, fit_stack
from rankstream.models.entropy.guides import PRICED, FittedGuide, with_attributes
from rankstream.models.entropy.ranking_laws import MAX_STATES

MIN_CHOICES = 50  # choices before the first fit; benchmarks/stream_models.py shows what these settings bring
REWEIGH_GROWTH = 2.0  # of the choices, after which guides are weighed anew
REWEIGH_EVERY = 30  # choices per coordinate after which they are where old choices fade, so that their number stays
REFIT_NATS = 1 / 24  # per coordinate: noise alone moves the counts this far while their number grows by a tenth
REFIT_GROWTH, REFIT_EVERY = 1.1, 1  # the least growth, or choices per coordinate, between two fits
PSEUDO_CHOICES = 0.5  # for every coordinate, where counts of two moments are compared
MAX_SIZES = (400, 64, 4_000)  # offers, items and coordinates of a market that is followed
TOLERANCE_NATS = 1e-2  # ten times that of a fit: refits follow each other, warm; not tuned
Due = Literal["anew", "again"]
KINDS: dict[str, type[Any]] = {kind.FORMAT: kind for kind in (LogitModel, LatentClassModel, MarkovChainModel)}
KINDS["rankstream-falling-class-model"] = LatentClassModel  # its name before 0.4, where items have an order


class EntropyFollower:
    """A maximum-entropy model that follows counts.

    Guides are weighed and the trust is chosen on held-out offers whenever the number of choices has doubled, or, where
    old choices fade, after 30 choices per coordinate. In between, guides are fitted again from where they were, with
    the same weights and trust, which costs a fraction. That happens once the counts have moved far enough from those
    of the last fit (``moved_nats``): after a tenth more choices in a steady market, and earlier after a change. So the
    work follows the choices, not the clock. A market of more than 400 offers or 64 items is not followed: its sparse
    model is published.

    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "pie", "no")]), [40, 20, 30, 10, 20])
    >>> follower = EntropyFollower(seed=0)
    >>> follower.follow(counts, 120)
    >>> follower.model.prior.items
    ('tea', 'pie', 'no')
    """

    def __init__(self, seed: int, attributes: Attributes | None = None) -> None:
        self.seed, self.attributes = seed, attributes
        self.fit: EntropyFit | None = None
        self.choices = 0.0  # since the start
        self.weighed = self.fitted = (0.0, 0.0)  # choices, and choices that count, when that was last done
        self.tallies: Vec = np.zeros(0)  # those of the last fit, for the offers of ``fit``

    @property
    def model(self) -> EntropyModel:
        """The model of the last refresh."""
        if self.fit is None or not isinstance(self.fit.model, EntropyModel):
            raise ValueError(f"There is no maximum-entropy model before {MIN_CHOICES} choices: use the sparse one.")
        return self.fit.model

    def knows(self, offers: Assortments) -> bool:
        """Whether there is a model of these items, and they are offered in few enough ways for it to stay current."""
        return self.fit is not None and self.fit.model.items == offers.items and can_follow(offers)

    def follow(self, counts: ChoiceCounts, arrived: float, changed: bool = False) -> None:
        """Count what arrived, and refresh if it is time; at once after a change of the market."""
        how = self.due(counts, arrived, changed)
        if how is not None:
            self.refresh(counts, how)

    def due(self, counts: ChoiceCounts, arrived: float, changed: bool = False) -> Due | None:
        """Count what arrived; whether it is time to weigh guides anew or to fit them again."""
        self.choices += arrived
        offers, count = counts.assortments, float(counts.totals.sum())
        size = offers.n_coordinates
        if count < MIN_CHOICES or not can_follow(offers) or offers.n_items < 2:
            return None
        if changed or self.fit is None or self._due(self.weighed, count, REWEIGH_GROWTH, REWEIGH_EVERY * size):
            return "anew"
        least = max(MIN_CHOICES, REFIT_EVERY * size)  # few coordinates would be refitted with every choice
        paid = self.choices - self.fitted[0] >= min(least, (REFIT_GROWTH - 1.0) * self.fitted[1])
        again = not self.knows(offers) or (paid and self.moved_nats(counts) >= REFIT_NATS * size)
        return "again" if again else None

    def moved_nats(self, counts: ChoiceCounts) -> float:
        """How far the counts have moved since the last fit: the log-likelihood that today's shares gain over those.

        Offers that joined since are compared with a uniform guess.
        """
        now, before = counts.assortments, np.full(counts.tallies.size, PSEUDO_CHOICES)
        if self.fit is not None:
            then = self.fit.assortments
            for offer, start, end in zip(then.offers, then.indptr[:-1], then.indptr[1:], strict=True):
                number = now.number(offer)
                if number is not None:
                    before[now.indptr[number] : now.indptr[number + 1]] += self.tallies[start:end]
        after = counts.tallies + PSEUDO_CHOICES
        shares = [tallies / np.add.reduceat(tallies, now.indptr[:-1])[now.owner] for tallies in (after, before)]
        return float(counts.tallies @ np.log(shares[0] / shares[1]))

    def refresh(self, counts: ChoiceCounts, how: Due, watch: Watch = unwatched) -> None:
        """A new model: weigh guides anew, or fit them again with the same weights and trust.

        On one thread of BLAS: the matrices are small, and several threads took 4 to 19 times the processor time.
        """
        with one_blas_thread():
            data, now = observed(counts), (self.choices, float(counts.totals.sum()))
            self.tallies = np.array(data.tallies, dtype=np.float64)
            stack = None if self.fit is None else self.fit.stack
            if how == "anew" or self.fit is None or stack is None:
                options: dict[str, Any] = {"guides": with_attributes(self.attributes), "watch": until(watch, 0.5)}
                self._tilt(data, fit_stack(data, seed=self.seed, **options), "auto", watch)
                self.weighed = now
            else:
                warm = self.knows(counts.assortments)
                again = stack.refit(data, self.seed, warm, until(watch, 0.5))
                self._tilt(data, again, self.fit.trust, watch)
            self.fitted = now

    def _due(self, last: tuple[float, float], count: float, growth: float, every: float) -> bool:
        choices, counted = last
        return count >= growth * counted or self.choices - choices >= max(every, (growth - 1.0) * count)

    def _tilt(self, data: ChoiceCounts, stack: Stack, trust: Any, watch: Watch) -> None:
        options: dict[str, Any] = {"seed": self.seed, "watch": watch, "attributes": self.attributes}
        self.fit = fit_max_entropy(data, stack, trust=trust, tolerance=TOLERANCE_NATS, start=self.fit, **options)
        if self.fit.approximate:  # sampled rankings are too many to be saved again and again
            self.fit = fit_max_entropy(data, stack, trust=None, **options)

    def certify(
        self, proven: Certificate, distance: Distance, counts: ChoiceCounts, max_states: int = MAX_STATES
    ) -> Certificate:
        """The follower model's distance with what the sparse run has proven, both at the counts as they are.

        An offer that came after the last refresh, and needs a program of more than ``max_states``, counts as if the
        model always chose its least frequent item: no answer is further from the data, so the distance is an upper
        bound until the next refresh.
        """
        target, offers = counts.target(), counts.assortments
        fitted = self.model.exact_probabilities(offers, max_states)
        for start, end in zip(offers.indptr[:-1].tolist(), offers.indptr[1:].tolist(), strict=True):
            if np.isnan(fitted[start:end]).any():
                fitted[start:end] = np.arange(end - start) == np.argmin(target.frequencies[start:end])
        data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
        upper = distance.value(fitted, data)
        return replace(proven, upper=upper, oracle_regret=0.0, dual_regret=upper - proven.lower)

    def to_content(self) -> dict[str, Any]:
        """Everything, as what JSON can hold, bit for bit."""
        own: dict[str, Any] = {"choices": self.choices, "weighed": list(self.weighed), "fitted": list(self.fitted)}
        own |= {} if self.attributes is None else {"attributes": self.attributes.to_content()}
        if self.fit is None or self.fit.stack is None:
            return own
        stack, offers = self.fit.stack, self.fit.assortments
        code = {item: number for number, item in enumerate(offers.items)}
        return own | {
            "items": list(offers.items),
            "offers": [[code[item] for item in offer] for offer in offers.offers],
            "duals": self.fit.duals.tolist(),
            "shares": self.fit.fitted.tolist(),
            "tallies": self.tallies.tolist(),
            "trust": self.fit.trust,
            "trusts": self.fit.trusts,
            "guides": [_guide_content(guide) for guide in stack.guides],
            "weights": stack.weights.tolist(),
            "scores": stack.scores,
            "misfit": stack.misfit,
            **({"order": offers.precedence.pairs.tolist()} if offers.order else {}),
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any], seed: int) -> "EntropyFollower":
        """What ``to_content`` described."""
        follower = cls(seed, Attributes(**content["attributes"]) if "attributes" in content else None)
        times = finite_array("times", [content["choices"], *content["weighed"], *content["fitted"]], (5,)).tolist()
        follower.choices, follower.weighed, follower.fitted = times[0], (times[1], times[2]), (times[3], times[4])
        if "guides" not in content:
            return follower
        items = tuple(content["items"])
        order = [(items[one], items[other]) for one, other in content.get("order", ())]
        offers = Assortments([[items[code] for code in offer] for offer in content["offers"]], items, order)
        guides = tuple(_guide_of(one, offers, follower.attributes) for one in content["guides"])
        weights = finite_array("weights", content["weights"], (len(guides),))
        stack = Stack(guides, weights, (), content["scores"], content["misfit"])
        duals, trust = finite_array("duals", content["duals"], (offers.n_coordinates,)), content["trust"]
        model = EntropyModel(stack.prior, offers, duals, follower.attributes)
        before = content.get("tallies", [0.0] * duals.size)  # not before 0.4: then the next fit is due at once
        follower.tallies = finite_array("tallies", before, duals.shape)
        if "shares" in content:  # not before 0.4; making the program again takes longer than all the rest
            model.remember(finite_array("shares", content["shares"], duals.shape))
        follower.fit = EntropyFit(
            model, offers, duals, model.probabilities(offers), 0.0, 0, True, False, trust, stack, content["trusts"]
        )
        model.note(prediction=follower.fit.describe())
        return follower


def can_follow(offers: Assortments) -> bool:
    """Whether the market is small enough for a maximum-entropy model that is refitted as choices come."""
    sizes = offers.n_offers, offers.n_items, offers.n_coordinates
    return all(own <= most for own, most in zip(sizes, MAX_SIZES, strict=True))


def _guide_content(fitted: FittedGuide) -> dict[str, Any]:
    models = [{"format": model.FORMAT} | model.to_content() for model in fitted.models if type(model) in KINDS.values()]
    return {"name": fitted.guide.name, "weights": fitted.weights.tolist(), "models": models}


def _guide_of(content: Mapping[str, Any], offers: Assortments, attributes: Attributes | None) -> FittedGuide:
    known = (*PRICED, *with_attributes(attributes))
    guide = {guide.name: guide for guide in known}[content["name"]]
    if not content["models"]:  # the uniform guess
        return guide.fit(ChoiceCounts(offers))
    models = tuple(KINDS[one["format"]].from_content(one) for one in content["models"])
    if any(model.items != offers.items for model in models):
        raise ValueError(f"the items of its guide {guide.name!r} are others")
    weights: Vec = finite_array("weights", content["weights"], (len(models),))
    return FittedGuide(guide, models, weights)
