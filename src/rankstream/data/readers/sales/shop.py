"""A shop's tables, opened, joined and counted: what ``read_sales`` and ``fit --stock`` share."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankstream._core import Label, whole_number
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.account import MIN_OFFER_CHOICES, Account, Exposure
from rankstream.data.readers.groups import faded_sql, period_label, period_of
from rankstream.data.readers.options import ReadOptions, check_options, check_rejects, translated
from rankstream.data.readers.prices import settled
from rankstream.data.readers.problems import Problems, shown
from rankstream.data.readers.reading import Reading
from rankstream.data.readers.results import COUNTED, FADED, SQUARED, ReadResult, Tally, combined, new_tally
from rankstream.data.readers.roles import parsed
from rankstream.data.readers.sales.availability import (
    LISTINGS,
    StateOffers,
    Sum,
    Timeline,
    date_sell_outs,
    form_of,
    items_of,
    price_changes,
    stock_changes,
    timeline_of,
    uncertain_counts,
)
from rankstream.data.readers.sales.join import (
    CHOICES,
    CONFLICTS,
    Join,
    SalesRules,
    Visits,
    Window,
    left_without,
    visit_periods,
)
from rankstream.data.readers.sales.tables import FOREVER, ROLES, SECOND, Codes, SalesTable, check_zone, open_table
from rankstream.data.readers.sources.database import own_database
from rankstream.data.readers.tallies import Tallies
from rankstream.data.readers.times import Clock, Span, clock_of, moment_of
from rankstream.data.uncertain import UncertainCounts

MAX_OFFERS = 20_000  # different offers that are kept as they are; not tuned, their tables take seconds to build
MEMORY_LIMIT = "1GB"
PAID = "paid"
NO_CHOICE = "no choice"
BEFORE = "{item!r} was sold at {time}, before the first row of the stock log of its store: the sale is left out."
UNCOUNTED = "{item!r} was sold at {time}, when visits were not counted: the sale is left out."
CONFLICT = "{item!r} was sold at {time}, when it was not in stock: correct the stock log, or use conflicts='extend'."
Key = tuple[str, ...]


@dataclass(frozen=True)
class Gathered:
    """What was sold in which market from which offer, who met which stock-outs, and the account."""

    result: ReadResult
    exposures: list[Exposure]
    account: Account
    how: ReadOptions
    notes: tuple[str, ...]
    uncertain: Callable[[Sequence[Label], Any], UncertainCounts] | None = None


@dataclass
class Shop:
    """The tables of some stores, and how they are read; see ``read_sales``.

    ``markets`` are the roles that make a market, store or category, and the columns that play them.
    """

    tables: dict[str, SalesTable]
    how: ReadOptions
    rules: SalesRules
    problems: Problems
    zone: str | None
    markets: dict[str, str]
    max_offers: int = MAX_OFFERS
    with_prices: bool = False
    clock: Clock | None = None
    period: str | None = None
    window: Window = (-FOREVER, FOREVER)
    rows: dict[str, int] = field(default_factory=dict)
    doubtful: int = 0

    def read(self, memory: str | None) -> Reading:
        """All choices over one set of offers, and those of each market."""
        found = self.gather(memory)
        tally, levels = found.result.tally, None
        if self.with_prices:
            tally, levels = settled(self.tables["receipts"].source.name, tally, self.how.price_levels)
        parts = found.how.counts(tally, "sales", levels=levels)
        total, groups, slices = combined(found.result, parts, self.clock)
        seen = np.sum([part.totals for (kind, *_), part in parts.items() if kind == COUNTED], axis=0)
        roles = {f"{kind}.{role}": name for kind, table in self.tables.items() for role, name in table.roles.items()}
        doubt = found.uncertain
        uncertain = None if doubt is None else doubt(total.assortments.items, None)
        account = replace(
            found.account,
            uncertain=0.0 if uncertain is None else uncertain.unsure,
            offers=total.assortments.n_offers,
            small_offers=int((seen < MIN_OFFER_CHOICES).sum()),
            exposures=tuple(_at_levels(one, levels) for one in found.exposures),
        )
        groups = groups if self.markets or self.period else {}
        return Reading(
            total, self.rows["receipts"], self.problems, "sales", groups, roles, found.result.span,
            None if found.result.spans is None else slices, found.result.spans, levels,
            notes=found.notes, account=account, uncertain=uncertain,
            uncertain_groups={
                key: doubt(total.assortments.items, key) for key in groups if doubt is not None and self.period is None
            },
        )  # fmt: skip

    def tallies(self, memory: str | None = MEMORY_LIMIT) -> tuple[Tallies, Account]:
        """The choices of each market over its own offers, for ``estimate_many``, and the account of all."""
        found = self.gather(memory)
        tallies = Tallies(tuple(self.markets.values()), found.how, "sales", notes=found.notes)
        for (_, key, _), outcomes in found.result.tally.items():
            for outcome, weight in outcomes.items():
                tallies.add(key if isinstance(key, tuple) else (key,), outcome, weight)
        return tallies, found.account

    def gather(self, memory: str | None) -> Gathered:
        """Load, clean and join all tables, and turn the sums into outcomes."""
        with own_database(memory) as database:
            codes, stop = Codes(), self.rules.on_error == "stop"
            for kind, table in self.tables.items():
                self.rows[kind], doubtful = table.load(database, codes, self.problems, stop, self.zone)
                self.doubtful += doubtful if kind == "receipts" else 0
            self._check_stores(codes)
            join = Join(database, self.tables["receipts"], codes, self.rules, self.problems)
            form = form_of(self.tables["stock"], database, self.rules.stock_format)
            timeline, masks = self._attach(join, form)
            visits = None
            if "visits" in self.tables:
                visit_periods(database, "count" in self.tables["visits"].roles, self.window)
                visits = left_without(database, timeline, self.shared, masks)
                join.leave_out("uncounted", "period IS NULL", UNCOUNTED, "sales")
            return self._settle(join, form, timeline, masks, visits)

    @property
    def shared(self) -> bool:
        """Whether all stores have one stock log."""
        return "store" not in self.tables["stock"].roles

    def _attach(self, join: Join, form: str) -> tuple[Timeline, dict[int, int]]:
        """Clean the receipts and join them with the offers; return these, and the items of each category as bits."""
        changes = stock_changes(join.database, self.tables["stock"], form)
        items = join.codes.of.get("item", {})
        asked = None if self.how.items is None else {items[name] for name in self.how.items if name in items}
        known = self._categories(join, {one.item for one in changes if asked is None or one.item in asked})
        join.clean(known, self.window)
        if self.rules.between != "present":
            if form != "snapshots":
                raise ValueError(f"between={self.rules.between!r} needs snapshots, but the stock log has {form}.")
            changes = list(date_sell_outs(join.database, changes, self.shared, self.rules.between))
        prices = price_changes(join.database, "prices" in self.tables, self.shared) if self.with_prices else None
        timeline = timeline_of(changes, prices, len(items), form in LISTINGS)
        join.attach(timeline, self.shared)
        masks: dict[int, int] = defaultdict(int)
        for item, category in known.items():
            masks[category] |= 1 << item
        return timeline, masks

    def _categories(self, join: Join, listed: set[int]) -> dict[int, int]:
        """The category of each item: the most frequent one on receipts, or else in the stock log."""
        if "category" not in self.markets:
            return dict.fromkeys(sorted(listed), 0)
        found: dict[int, int] = {}
        for table in ("stock", "receipts"):
            rows = join.query(f"SELECT item, mode(category) FROM {table} WHERE category IS NOT NULL GROUP BY item")
            found |= {item: category for item, category in rows if item in listed}
        return dict(sorted(found.items()))

    def _settle(
        self, join: Join, form: str, timeline: Timeline, masks: dict[int, int], visits: Visits | None
    ) -> Gathered:
        """The outcomes of all sums, without what the rules leave out, and the account."""
        unknown_time = join.unknown_time()
        join.leave_out("before", "state IS NULL", BEFORE, "sales")
        receipts, several = join.baskets()
        if visits is not None:
            visits.add(join.database)
        ends = self.how.inside if visits is None else self.how.no_choice or NO_CHOICE
        how = self.how if visits is None else replace(self.how, no_choice=ends, outside_share=None)
        offers = StateOffers(timeline.states, join.codes.names("item"), masks, ends, join.chosen())
        pairs = offers.conflicts()
        against = join.conflicts(pairs)
        if pairs and self.rules.conflicts != "extend":
            join.leave_out("conflict", CONFLICTS, CONFLICT, "sales")
            if self.rules.conflicts == "stop":
                raise ValueError(next(str(one) for one in self.problems.first if one.kind == "conflict"))
            offers.chosen = join.chosen()
        before, weights = offers.count(), join.weights()
        left, sold = int(weights.pop(-1, 0)), sum(weights.values())
        ignored = offers.coarsen(weights, self.max_offers)
        units = sum(weight for item, weight in weights.items() if not offers.ignored >> item & 1)
        total = sold + (against if self.rules.conflicts == "skip" else 0.0)
        share = self.how.outside_share
        account = Account(
            form, self.rows["receipts"], units, receipts, several, against, against / total if total else 0.0,
            self.rules.conflicts, dict(self.problems.by_kind), offers.count(), 0, unknown_time,
            None if visits is None else visits.visits, None if visits is None else left,
            0 if visits is None else visits.shortfall, share if isinstance(share, float) else None,
            self.rules.per_receipt, tuple(ignored), 1.0 - units / sold if sold else 0.0, before,
            ends if visits is not None or share is None else self.how.no_choice or NO_CHOICE,
            between=self.rules.between, doubtful_times=self.doubtful,
        )  # fmt: skip
        if not units:
            reasons = self.problems.summary() or "There are none in the time asked for."
            raise ValueError(f"{self.tables['receipts'].source.name} has no sales that can be used. {reasons}")
        sums, span, spans = self._sums(join, offers)
        keys = self._keys(join.codes)
        exposures = _exposures(offers, sums, keys)
        if account.assumed is not None and account.no_choice is not None:
            exposures = [one.with_outside(account.assumed, account.no_choice) for one in exposures]
        stores = join.codes.names("store")

        def doubt(items: Sequence[Label], key: Any) -> UncertainCounts:
            whole = key if isinstance(key, tuple) else (key,)
            some = [one for one in sums if key is None or keys(one) == whole]
            return uncertain_counts(timeline, offers, some, items, self.shared, stores)

        result = ReadResult(self._tally(sums, offers, keys), self.rows["receipts"], span, spans)
        uncertain = doubt if self.rules.between == "uncertain" else None
        return Gathered(result, exposures, account, how, self._notes(form), uncertain)

    def _sums(self, join: Join, offers: StateOffers) -> tuple[list[Sum], Span, list[Span] | None]:
        """The sums of all choices that are not ignored, and the times of all and of each slice.

        States with the same offer, stock-outs and prices are merged, but for uncertain offers, whose states have times.
        """
        slices, half_life = (None, None) if self.clock is None else (self.clock.slices, self.clock.half_life)
        span, spans = join.times(slices)
        if self.clock is not None:
            self.clock.check(span)
        is_apart = self.rules.between == "uncertain"
        merged = ((state, kind, state) for state, kind in offers.chosen) if is_apart else offers.merged()
        store = "store" if is_apart or "store" in self.markets else "0"
        price = "price" if self.with_prices else "CAST(NULL AS DOUBLE)"
        faded = "0.0, 0.0" if half_life is None else faded_sql(half_life, span[1])
        period = f"date_trunc('{self.period}', make_timestamp(time))" if self.period else "NULL"
        keys = f"{store}, state, category, item, {price}, {period} AS period"
        rows = join.sums(merged, items_of(offers.ignored), keys, spans or [], faded)
        return [Sum(*row) for row in rows], span, spans

    def _tally(self, sums: list[Sum], offers: StateOffers, keys: Callable[[Sum], Key]) -> Tally:
        """The outcomes of all sums, by market and slice of time, and what is left of them with a half-life."""
        tally, fades = new_tally(), self.clock is not None and self.clock.half_life is not None
        for one in sums:
            cells, outcome = keys(one), offers.outcome(one)
            cells += () if self.period is None else (period_label(one.period, self.period),)
            key = cells[0] if len(cells) == 1 else cells
            tally[COUNTED, key, one.slice][outcome] += one.weight
            if fades:
                tally[FADED, key, 0][outcome] += one.faded
                tally[SQUARED, key, 0][outcome] += one.squared
        return tally

    def _keys(self, codes: Codes) -> Callable[[Sum], Key]:
        names = {role: codes.names(role) for role in self.markets}
        return lambda one: tuple(names[role][getattr(one, role)] for role in self.markets)

    def _notes(self, form: str) -> tuple[str, ...]:
        notes = [note for table in self.tables.values() for note in table.notes]
        stock = self.tables["stock"]
        if (
            self.rules.stock_format is None
            and "offered" not in stock.roles
            and {"on_hand", "available"} & set(stock.roles)
        ):
            other = "events" if form == "snapshots" else "snapshots"
            notes.append(f"{stock.source.name} is read as {form}: if that is wrong, set stock_format={other!r}.")
        return tuple(notes)

    def _check_stores(self, codes: Codes) -> None:
        stores, receipts = codes.names("store"), self.tables["receipts"]
        for kind in ("receipts", "visits"):
            table = self.tables.get(kind)
            if table is not None and "store" not in table.roles and len(stores) > 1:
                raise ValueError(
                    f"{table.source.name} has no column of stores, and there are {len(stores):,} stores: map one with "
                    f"columns='{kind}.store=YOUR_COLUMN'."
                )
        if "store" not in receipts.roles and not stores:
            codes.code("store", "all")


def open_shop(
    given: Mapping[str, Any],
    *,
    by: str | Sequence[str] = (),
    category: str | None = None,
    columns: Mapping[str, str] | str | None = None,
    rejects: Any = None,
    timezone: str | None = None,
    max_offers: int = MAX_OFFERS,
    time_slices: int | None = None,
    half_life: Any = None,
    period: str | None = None,
    since: Any = None,
    until: Any = None,
    **options: Any,
) -> Shop:
    """The tables of a shop with their columns recognised, ready to be read; options are those of ``read_sales``."""
    problems = Problems("skip", rejects)
    rules = SalesRules(**{name: options.pop(name) for name in CHOICES if name in options})
    how = check_options(**options, prices=None if given["prices"] is None else PAID)
    said = parsed(columns) if isinstance(columns, str) else dict(columns or {})
    said |= {} if category is None else {"receipts.category": category}
    paths = {kind: source for kind, source in given.items() if source is not None and not is_paid(source)}
    with translated():
        tables = {kind: open_table(kind, source, said, how) for kind, source in paths.items()}
    check_rejects(rejects, *(table.source for table in tables.values()))
    _check_columns(said, tables)
    names = {table.naive(): table.source.name for table in reversed(tables.values())}
    if timezone is not None:
        check_zone(timezone)
    elif {True, False} <= set(names):
        raise ValueError(
            f"{names[True]} has times without a zone, and others have one: set it, such as timezone='Europe/Berlin'."
        )
    first, last = moment_of("since", since), moment_of("until", until)
    window = (-FOREVER if first is None else round(first * SECOND), FOREVER if last is None else round(last * SECOND))
    if rules.between == "uncertain" and (given["prices"], how.outside_share, half_life) != (None, None, None):
        raise ValueError("between='uncertain' supports neither prices, outside_share nor half_life: leave them out.")
    if is_paid(given["prices"]) and "price" not in tables["receipts"].roles:
        raise ValueError(f"{tables['receipts'].source.name} has no column 'price': set columns='price=YOUR_COLUMN'.")
    return Shop(
        tables, how, rules, problems, timezone, _markets(tables["receipts"], by, category),
        whole_number("max_offers", max_offers, 1), given["prices"] is not None,
        clock_of(tables["receipts"].source.name, tables["receipts"].roles["time"], time_slices, None, half_life),
        period_of(period), window,
    )  # fmt: skip


def is_paid(prices: Any) -> bool:
    """Whether prices are those on receipts alone."""
    return isinstance(prices, str) and prices == PAID


def _check_columns(said: Mapping[str, Any], tables: Mapping[str, SalesTable]) -> None:
    for name, column in said.items():
        table, _, role = name.rpartition(".")
        kinds = [kind for kind in tables if table in ("", kind) and role in ROLES[kind]]
        if not kinds:
            known = sorted({role for roles in ROLES.values() for role in roles})
            raise ValueError(f"Unknown column role {name!r}: the roles are {', '.join(known)}.")
        if not any(column in tables[kind].source.columns for kind in kinds):
            raise ValueError(f"No table has the column {shown(column)} for {role!r}: correct its name in columns.")


def _markets(receipts: SalesTable, by: str | Sequence[str], category: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for column in (by,) if isinstance(by, str) else by:
        role = next((role for role in ("store", "category") if receipts.roles.get(role) == column), None)
        if role is None:
            stores = receipts.roles.get("store")
            known = f"by={stores!r}" if stores else "columns='store=YOUR_COLUMN'"
            raise ValueError(f"by is {column!r}, but sales can only be grouped by store or category: use {known}.")
        found[role] = column
    return found | ({} if category is None else {"category": category})


def _exposures(offers: StateOffers, sums: list[Sum], keys: Callable[[Sum], Key]) -> list[Exposure]:
    """How many customers of each market met each offer, and what was out of stock."""
    found: dict[tuple[Key, int, int], float] = defaultdict(float)
    for one in sums:
        found[keys(one), one.state, one.category] += one.weight
    exposures = []
    for (key, number, category), customers in found.items():
        state, mask = offers.states[number], offers.masks[category] & ~offers.ignored
        offered, missing = (
            offers.entries(state, some & mask, ends) for some, ends in ((state.items, True), (state.missing, False))
        )
        exposures.append(Exposure(key[0] if len(key) == 1 else key, offered, missing, customers))
    return exposures


def _at_levels(one: Exposure, levels: PriceLevels | None) -> Exposure:
    """The same with items at their price levels; what is missing at a price that was never on offer is left out."""
    if levels is None:
        return one

    def labels(entries: tuple[Any, ...]) -> Iterator[Any]:
        for entry in entries:
            with suppress(ValueError):
                yield levels.label(*entry) if isinstance(entry, tuple) else entry

    return one._replace(offered=tuple(labels(one.offered)), missing=tuple(labels(one.missing)))
