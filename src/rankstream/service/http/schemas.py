"""Schemas of requests and answers, with examples, for /openapi.json."""

from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, model_validator

from rankstream.service.storage.publication import MARKET_EXAMPLE, MODEL_EXAMPLE, MarketAnswer, PublishedAnswer

MAX_ENTRIES = 200  # of an object whose entries are all validated
MAX_LIST = 10_000  # values of one list or object in a question: twice the items of a market


def _few(content: Any, *, most: int = MAX_ENTRIES) -> Any:
    if isinstance(content, dict) and len(content) > most:
        raise ValueError(f"{len(content):,} entries are more than {most:,}: send fewer")
    return content


def _numbers(content: Any) -> Any:
    """Reject an object at its first value that is not a number; collecting all errors would block the server."""
    if isinstance(content, dict):
        for item, value in _few(content, most=MAX_LIST).items():
            try:
                if value is not None and not isfinite(float(value)):
                    raise ValueError
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"the value of {item[:50]!r} is not a number") from None
    return content


Name = Annotated[StrictStr | StrictInt, Field(description="An item.")]
Names = Annotated[list[Name], Field(max_length=MAX_LIST, fail_fast=True)]
Texts = Annotated[list[StrictStr], Field(max_length=MAX_LIST, fail_fast=True)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
Pairs = Annotated[list[Pair], Field(max_length=MAX_LIST, fail_fast=True)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Offer = Annotated[Names | dict[str, Finite | None], BeforeValidator(_numbers)]
Amounts = Annotated[
    dict[str, Finite] | Finite, BeforeValidator(_numbers), Field(description="A number for each item, or one for all.")
]
PriceTable = Annotated[
    dict[str, Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=1, max_length=12)]],
    Field(min_length=1, max_length=MAX_ENTRIES),
    BeforeValidator(_few),
]
Cell = StrictStr | Finite
ItemTable = Annotated[
    dict[str, Annotated[dict[str, Cell], Field(max_length=MAX_ENTRIES)]],
    Field(min_length=1, max_length=MAX_ENTRIES),
    BeforeValidator(_few),
]
NewItems = Annotated[
    ItemTable | None,
    Field(description="Attributes of candidates that were never offered, in a market with attributes."),
]
OFFERED = {"offered": ["tea", "pie", "nothing"], "chosen": "tea"}
PRICED = {"offered": {"tea": 3.5, "cake": 4.0}, "chosen": "tea"}
AS_TEXT = {"offered": ["tea@3.50", "cake@4.00", "nothing"], "chosen": "nothing"}
COSTS = {"costs": {"tea": 1.2, "cake": 2.5}, "no_choice": "nothing"}
TEA: Any = {"market": "cafe", "model": MODEL_EXAMPLE}
SHARES = {"tea": 0.6, "pie": 0.3, "nothing": 0.1}
PREDICTION: Any = {"offer": ["tea", "pie"], "shares": SHARES, "added": ["nothing"], "nearness": None, "warnings": []}


def shown(*others: dict[str, Any], **example: Any) -> ConfigDict:
    """Return the configuration of a schema with an example, and further examples if there are any."""
    several: dict[str, Any] = {"examples": [example, *others]} if others else {}
    return ConfigDict(extra="forbid", json_schema_extra={"example": example, **several})


class RequestBody(BaseModel):
    """A body with known keys alone; one with many others is rejected at the first, as each would be an error."""

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        if isinstance(content, dict) and len(content) > len(cls.model_fields):
            unknown = next(key for key in content if key not in cls.model_fields)
            raise ValueError(f"unknown field {unknown[:50]!r}: leave it out")
        return content


class ProblemAnswer(BaseModel):
    """The reason for a rejected request."""

    model_config = shown(error="Unknown market: send choices to it first.")
    error: str


class ModelAnswer(BaseModel):
    """An answer from the published model of a market."""

    market: str
    model: PublishedAnswer


class Acknowledged(BaseModel):
    """A batch that was written to the log: the position after its last record, and its number of records."""

    model_config = shown(market="cafe", position=1250, records=50)
    market: str
    position: int
    records: int


class MarketList(BaseModel):
    """All markets that the token may read."""

    model_config = shown(markets=[MARKET_EXAMPLE])
    markets: list[MarketAnswer]


class SettingsBody(RequestBody):
    """Settings of a market to change; those left out stay as they are, and null resets one."""

    model_config = shown(
        half_life="7d", detect=False, served="max-entropy", no_choice="nothing", price_levels={"tea": [3.0, 3.5]}
    )
    half_life: StrictStr | Finite | None = Field(
        None, description="Number of choices, or time such as 7d, after which a choice counts half."
    )
    window: StrictStr | Finite | None = Field(
        None, description="Use only the latest N choices, or those of the last 7d."
    )
    detect: bool | None = Field(
        None,
        description="Restart the model when a change of tastes is detected. Null: without a half-life or window, while "
        "every record is one choice.",
    )
    threshold: Annotated[float, Field(ge=0, le=1e6)] | None = Field(
        None, description="Alarm when a model of recent choices fits better by this log-likelihood."
    )
    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, description="Solver rounds per batch.")
    served: Literal["max-entropy", "sparse"] | None = Field(None, description="Kind of model to publish.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(None, description="Seed of starting points and ties.")
    no_choice: StrictStr | None = Field(None, description="Name of the no-purchase option; null as a choice means it.")
    price_levels: PriceTable | None = Field(
        None, description="Price levels of every item that has a price. Offers then include prices."
    )
    attributes: ItemTable | None = Field(
        None, description="Attributes of items, also of items to come: new items are then predicted by them."
    )


class SettingsAnswer(SettingsBody):
    """The settings of a market."""

    model_config = shown(
        market="cafe", half_life="7d", window=None, detect=False, threshold=None, rounds=None, served="max-entropy",
        seed=0, no_choice="nothing", price_levels={"tea": [3.0, 3.5]}, attributes=None,
    )  # fmt: skip
    market: str


class PredictBody(RequestBody):
    """Offers to predict: lists of items, or items with prices if the market has price levels."""

    model_config = shown({"offers": [PRICED["offered"]]}, offers=[["tea", "pie", "nothing"], ["pie", "nothing"]])
    offers: list[Offer] = Field(min_length=1, max_length=MAX_LIST, fail_fast=True)
    interval: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Confidence level of intervals, such as 0.95. Without it there are none."
    )
    margins: Annotated[dict[str, Finite], BeforeValidator(_numbers)] | None = Field(
        None, description="What a sale of each item earns; the answer then has the value of each offer per customer."
    )
    items: NewItems = None


class Predicted(BaseModel):
    """An offer and the share of customers who choose each item, as in ``rankstream predict --json``."""

    model_config = shown(**PREDICTION)
    offer: list[str]
    shares: dict[str, float]
    added: list[str] = Field(description="The no-purchase option, if it was missing from the offer and added.")
    nearness: dict[str, Any] | None = Field(description="As in decisions; null for models of a stream.")
    warnings: list[str]
    prices: dict[str, float | None] = {}
    between_levels: list[str] = Field([], description="Items whose price is between two levels.")
    intervals: dict[str, list[float]] | None = Field(None, description="Lower and upper end of each interval, by item.")
    worth: float | None = Field(None, description="With margins: what the offer earns per customer.")
    worth_interval: list[float] | None = Field(None, description="Lower and upper end of its interval.")
    gain: list[float] | None = Field(None, description="Lower and upper end of its gain over the first offer.")


class Predictions(ModelAnswer):
    """Predictions in the order of the request; ``provisional`` is that of the model."""

    model_config = shown(**TEA, provisional=False, predictions=[PREDICTION])
    provisional: bool
    intervals: str | None = Field(None, description="Where the intervals come from, or why there are none (yet).")
    predictions: list[Predicted]


class Feasible(RequestBody):
    """Constraints on offers, and what items earn, as for ``rankstream.decide.best_offer``.

    If items have prices, give costs: a sale earns the price minus the cost.
    """

    margins: Amounts | None = None
    costs: Amounts | None = Field(None, description="Cost of a sale, for each item with price levels.")
    at_most: Annotated[int, Field(ge=0, le=10_000)] | None = None
    at_least: Annotated[int, Field(ge=0, le=10_000)] | None = None
    must: Names = []
    never: Names = []
    requires: Pairs = Field([], description="Pairs: the first is offered only with the second.")
    excludes: Pairs = Field([], description="Pairs: never offer both.")
    listing_costs: Amounts | None = None
    space: Amounts | None = None
    capacity: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    ladders: list[Annotated[list[Name], Field(min_length=2, max_length=20)]] = Field(
        [], max_length=1000, fail_fast=True, description="Items whose prices must not fall from one to the next."
    )
    present: Offer | None = Field(None, description="Today's offer.")
    changes: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
        None, description="With present: maximum number of items to add, drop or reprice."
    )
    no_choice: Name | None = None
    budget: Annotated[float, Field(gt=0, le=10)] = Field(2.0, description="Time limit of the search, in seconds.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class DecideBody(Feasible):
    """A question for the offer that earns most."""

    model_config = shown(COSTS, margins={"tea": 1.0, "pie": 3.0}, at_most=1, top=2)
    top: Annotated[int, Field(ge=1, le=100)] = 1
    items: NewItems = None


class NextBody(Feasible):
    """A question for the offer to try next."""

    model_config = shown(COSTS, margins={"tea": 1.0, "pie": 3.0}, at_most=1, how="thompson")
    how: Literal["thompson", "greedy", "ucb"] = "thompson"


class Decided(ModelAnswer):
    """The offer, its value and the proven bound; the fields are those of ``rankstream decide --json``."""

    model_config = shown(
        **TEA, decision={"offer": ["pie"], "value": 1.2, "bound": 1.2, "proven": True, "engine": "all offers"}
    )
    decision: dict[str, Any]


class SegmentAnswer(BaseModel):
    """A customer type and its share."""

    model_config = shown(ranking=["tea", "pie"], share=0.4)
    ranking: list[str]
    share: float


class SegmentsAnswer(ModelAnswer):
    """The largest customer types, at usual prices if items have prices."""

    model_config = shown(**TEA, segments_by="first two choices", segments=[{"ranking": ["tea", "pie"], "share": 0.4}])
    segments_by: Literal["whole rankings", "first two choices"]
    segments: list[SegmentAnswer]


class ItemMoves(BaseModel):
    """An item's share if all are offered, at usual prices, and what sells instead when it is gone."""

    model_config = shown(item="tea", share=0.6, gains={"pie": 0.7, "nothing": 0.3})
    item: str
    share: float
    gains: dict[str, float] | None


class SubstitutionAnswer(ModelAnswer):
    """What sells instead when an item is gone, for every item."""

    model_config = shown(**TEA, items=[{"item": "tea", "share": 0.6, "gains": {"pie": 0.7, "nothing": 0.3}}])
    items: list[ItemMoves]


class DriftAnswer(BaseModel):
    """What changed between the earlier and the later half of the latest records, as in ``rankstream drift --json``."""

    model_config = shown(
        market="cafe", before=600, after=600, compared="choices", level=0.05, control="holm", changed=True,
        verdict="Tastes changed: tea -10.0 points.", tested=4, tested_items=3, given_offers=False, moved=1,
        items=[{"item": "tea", "change": -0.1, "p_value": 0.001, "offers": 4, "moved": 1, "overall": -0.1}],
        offers=[
            {"offer": ["tea", "nothing"], "before": 300.0, "after": 300.0, "p_value": 0.001, "adjusted": 0.004,
             "moved": True, "item": "tea", "change": -0.1}
        ],
        appeared=[], vanished=[["pie", "nothing"]],
    )  # fmt: skip
    market: str
    before: int = Field(description="Records in the earlier half.")
    after: int
    compared: Literal["choices"]
    level: float
    control: str
    changed: bool
    verdict: str
    tested: int
    tested_items: int
    given_offers: bool
    moved: int = Field(description="Number of tested offers that changed significantly.")
    items: list[dict[str, Any]]
    offers: list[dict[str, Any]]
    appeared: list[list[str]]
    vanished: list[list[str]]


class CertificateAnswer(ModelAnswer):
    """The model's distance from the data, the lower bound for any ranking model, and the gap between them."""

    model_config = shown(
        **TEA, distance=0.03, proven_least_distance=0.026, gap=0.004, choices=1250.0,
        alarms=[{"choice": 900, "since": 850}],
    )  # fmt: skip
    distance: float | None
    proven_least_distance: float | None
    gap: float | None
    choices: float
    alarms: list[dict[str, int]]


class HealthAnswer(BaseModel):
    """Whether the server answers, or is ready for choices and questions."""

    model_config = shown(status="ready")
    status: Literal["alive", "ready", "starting"]


class UploadedFile(RequestBody):
    """An uploaded file, and the options to read it."""

    model_config = ConfigDict(extra="forbid")
    file: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    columns: Annotated[dict[str, str | Texts | None] | None, BeforeValidator(_few)] = None
    prices: str | Texts | None = None
    by: Texts = []
    no_choice: str | None = None


class Preferences(RequestBody):
    """Preferences entered on the page: margins or costs, today's offer, and the currency."""

    model_config = ConfigDict(extra="forbid")
    margins: Annotated[dict[str, Finite], BeforeValidator(_numbers)] = {}
    shelf: Texts = []
    currency: Annotated[str, Field(max_length=10)] = ""
