"""The command ``rankstream fit``: from a file of choices to a model file, within a time budget."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.files import check_target
from rankstream._core.terminal import as_time, print_answer, print_note, progress, shown
from rankstream.cli.model_answers import describe_levels, levels_line
from rankstream.cli.options import (
    REMEMBERED,
    SALES,
    AsJson,
    Data,
    ReadingOptions,
    choice,
    reading_options,
    shell_words,
    unused_columns,
)
from rankstream.models.files import kind_of, words_of
from rankstream.reports.origin import warning_lines

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import Reading, Sensitivity
    from rankstream.estimation.estimate import Estimate

PRICED = ("mnl-price", "latent-class-price")
METHODS = ("auto", "max-entropy", "nearest", "primal-dual", "mnl", "latent-class", "markov-chain", "mle", *PRICED)
NO_CHOICE = "no choice"
CERTIFIED = (
    *("distance", "noise_distance", "proven_least_distance", "gap", "mean_absolute_error"),
    *("converged", "cut_short"),
)
"""The facts about the fit that are saved with the model."""
TIME_SLICES = 8  # equal parts of the records, to test for a change: splits at quarters, dates within an eighth


@reading_options(without=("outside_share",))
def fit(
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    method: Annotated[str, choice(*METHODS, text="Estimation method; auto chooses by the size of the data.")] = "auto",
    budget: Annotated[float | None, typer.Option(min=0.0)] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0)] = None,
    tolerance: Annotated[float | None, typer.Option(min=0.0)] = None,
    no_standard_errors: Annotated[bool, typer.Option("--no-standard-errors")] = False,
    offer: Annotated[str | None, typer.Option(rich_help_panel="Model")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for ties and starting points.")] = 0,
    as_json: AsJson = False,
    outside_share: str | None = None,
    since: str | None = None,
    half_life: str | None = None,
    by: str | None = None,
    pool: Annotated[bool, typer.Option("--pool/--no-pool")] = True,
    attributes: Path | None = None,
    jobs: Annotated[int, typer.Option(help="With --by: number of parallel processes; -1 for one per CPU.")] = -1,
    *,
    reading: ReadingOptions,
) -> None:
    """Estimate a model from a file of choices, and save it.

    Example: rankstream fit choices.csv -o model.json

    Options:
    out: Output file (default: model.json); with --by, output folder (default: models).
    budget: CPU seconds after which the best model so far is saved (default: no limit; for nearest and primal-dual 600,
        or 60 with very many items).
    timeout: Like --budget, in wall-clock seconds. The result then depends on how busy the machine is.
    tolerance: Accuracy at which to stop (smaller is slower): log-likelihood per choice for max-entropy and mle,
        certified gap for nearest, mean absolute error for primal-dual.
    no_standard_errors: Do not store standard errors: a little faster, but 'show' has no intervals.
    offer: With several values of --outside-share: the offer to predict, such as 'tea;cake' (default: all items).
    outside_share: Assumed share of customers who bought nothing. Several, such as 0.2,0.4, show how much it matters.
    since: Ignore choices before this time, such as 2024-05-16 (needs a time column).
    half_life: Count older choices less: with 30d, half after 30 days (needs a time column).
    by: Fit one model for each value of these columns, such as store,category.
    pool: With --by: let small markets borrow strength from the others.
    attributes: CSV table of items and their attributes, for few choices and for new items ('predict --items').
    """
    from rankstream.estimation.budget import fit_within

    shares = as_shares(outside_share)
    first_share = replace(reading, outside_share=shares[0] if shares else None)
    if by is not None or reading.category is not None:
        from rankstream.cli.markets import fit_markets, refuse

        options: dict[str, Any] = {"--tolerance": tolerance, "--offer": offer, "--attributes": attributes}
        options |= {"--since": since, "--half-life": half_life}
        options |= {"Several shares in --outside-share": len(shares) > 1, "--budget": budget, "--timeout": timeout}
        refuse("many markets", options)
        how = {"method": method, "n_jobs": jobs, "out": out or Path("models"), "pool": pool, "seed": seed}
        how["errors"] = not no_standard_errors
        fit_markets(data, by or "", first_share, as_json, **how)
        return
    out = out or Path("model.json")
    check_target(out, "the model with --out")
    if offer is not None and len(shares) < 2:
        raise ValueError("--offer needs several assumed shares, such as --outside-share 0.2,0.4: leave it out.")
    how_to_fit: Any = method
    if attributes is not None:
        from rankstream.data.attributes import read_attributes
        from rankstream.estimation.methods import make

        how_to_fit, tolerance = make(method, tolerance, attributes=read_attributes(attributes)), None
    no_choice = reading.no_choice or NO_CHOICE
    times = {"since": since, "half_life": half_life, "time_slices": TIME_SLICES, "look": True}
    choices = (replace(reading, no_choice=None) if shares else reading).read(data, **times)
    unused = unused_columns(choices, as_json)
    with progress("starting") as tell:
        seconds, wall_seconds = (None if limit is None else limit / max(1, len(shares)) for limit in (budget, timeout))
        fit_one = partial(
            fit_within, budget=seconds, timeout=wall_seconds, method=how_to_fit, tolerance=tolerance,
            seed=seed, errors=not no_standard_errors, watch=tell,
        )  # fmt: skip
        if shares:
            (counts, best), sensitivity = assumed(choices.counts, fit_one, shares, no_choice, offer)
        else:
            (counts, best), sensitivity = (choices.counts, fit_one(choices.counts)), None
    choices = replace(choices, counts=counts)
    content = describe_fit(best, choices, out) | {"unused": unused}
    content["changed"] = None if half_life else describe_change(choices)
    best.model.note(**origin(best, content, choices, first_share, data, seed)).save(out)
    if sensitivity is not None:
        content["no_choice"] = describe_assumption(sensitivity, no_choice)
    print_answer(as_json, content, as_text(content))
    if content["changed"] is not None:
        print_note(content["changed"]["sentence"])


def as_shares(text: str | None) -> list[float]:
    """Parse numbers from 0 to 0.999, separated by commas."""
    try:
        shares = [float(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        shares = [-1.0]
    if not all(0.0 <= share <= 0.999 for share in shares):
        raise ValueError(f"--outside-share is {text!r}: give shares from 0 to 0.999, such as 0.3 or 0.2,0.3,0.4.")
    return shares


def assumed(
    counts: "ChoiceCounts",
    fit_one: "Callable[[ChoiceCounts], Estimate[Any]]",
    shares: list[float],
    no_choice: str,
    offer: str | None,
) -> "tuple[tuple[ChoiceCounts, Estimate[Any]], Sensitivity]":
    """Fit a model for each assumed share; return the first with its counts, and the predictions of all from an offer.

    Without an offer, the predictions are for an offer of all items.
    """
    from rankstream.data.readers import outside_sensitivity
    from rankstream.models.item_names import items_in

    if all(no_choice in members for members in counts.assortments.offers):
        raise ValueError(f"Every offer has {no_choice!r} already: leave out --outside-share, or change --no-choice.")
    names = {str(item): item for item in (*counts.assortments.items, no_choice)}
    items = list(names.values()) if offer is None else items_in(offer, names)
    if no_choice not in items:
        items.append(no_choice)
    fits: list[tuple[ChoiceCounts, Estimate[Any]]] = []

    def answer(grown: "ChoiceCounts") -> dict[str, float]:
        fits.append((grown, fit_one(grown)))
        return {str(item): share for item, share in fits[-1][1].model.predict(items).items()}

    sensitivity = outside_sensitivity(counts, answer, shares, no_choice)
    return fits[0], sensitivity


def describe_fit(fit: "Estimate[Any]", choices: "Reading", out: Path) -> dict[str, Any]:
    """Return the facts about a fit for JSON."""
    from rankstream.estimation.misfit import noise_distance
    from rankstream.models.rankings import RankingModel

    content = {
        "model": str(out),
        "method": fit.method.name,
        "kind": kind_of(fit.model),
        "rankings": len(fit.model.weights) if isinstance(fit.model, RankingModel) else None,
        "choices": choices.counts.observations,
        "offers": choices.counts.assortments.n_offers,
        "rounds": fit.rounds,
        "converged": bool(fit.converged),
        "cut_short": bool(fit.cut_short),
        "mean_absolute_error": float(fit.history.mae[-1]),
        "distance": float(fit.certificate.upper),
        "noise_distance": noise_distance(fit.model, choices.counts),
        "proven_least_distance": float(fit.certificate.lower),
        "gap": float(fit.certificate.gap),
        "oracle_exact": bool(fit.certificate.exact),
    }
    if choices.account is not None:
        content["account"] = choices.account.to_json()
    if choices.prices is not None:
        content["prices"] = describe_levels(choices.prices)
    return content


def describe_change(choices: "Reading") -> dict[str, Any] | None:
    """Return a significant change over time for JSON, with advice; None without a change or without times."""
    from rankstream.data.change import change_over_time

    if choices.slices is None or choices.slice_times is None or len(choices.slices) < 2:
        return None
    change = change_over_time(choices.slices, [first for first, _ in choices.slice_times])
    if change is None:
        return None
    when = as_time(change.time)
    return {
        "time": when,
        "p_value": change.p_value,
        "item": str(change.item),
        "points": change.points,
        "offers": change.offers,
        "sentence": f"The choices changed over time (around {when}, {str(change.item)!r} "
        f"{change.points:+.0f} points, p = {change.p_value:.1g}): one model mixes before and after. Fit "
        f"the later ones with --since {when}, weight older ones less with --half-life 30d, or use 'stream --detect'.",
    }


def origin(
    best: "Estimate[Any]", content: dict[str, Any], choices: "Reading", reading: ReadingOptions, data: Path, seed: int
) -> dict[str, Any]:
    """Return what is saved in the model's file about the fit, the data and how they were read."""
    from rankstream._core.version import VERSION

    options = {name: getattr(reading, name) for name in (*REMEMBERED, *SALES)}
    return {
        "method": best.method.name,
        "seed": seed,
        "certificate": {name: content[name] for name in CERTIFIED},
        "choices": content["choices"],
        "data": {
            "file": shown(data.name),
            "digest": choices.counts.digest(),
            "records": choices.rows,
            "format": choices.format,
        },
        "reading": {name: value for name, value in options.items() if name in REMEMBERED or value is not None},
        "times": None if choices.times is None else [as_time(time) for time in choices.times],
        "changed": None if content["changed"] is None else content["changed"]["sentence"],
        "unused": content["unused"],
        "version": VERSION,
        **({} if choices.prices is None else {"prices": choices.prices.to_content()}),
    }


def describe_assumption(sensitivity: "Sensitivity", no_choice: str) -> dict[str, Any]:
    """Return the assumed shares of no-purchases and their predictions, for JSON."""
    return {
        "item": no_choice,
        "assumed_share": sensitivity.shares[0],
        "predicted": [
            {"assumed_share": share, "shares": dict(zip(sensitivity.names, answer, strict=True))}
            for share, answer in zip(sensitivity.shares, sensitivity.answers.tolist(), strict=True)
        ],
        "spans": sensitivity.spans,
    }


def as_text(content: dict[str, Any]) -> str:
    """Return the facts about a fit as text."""
    what = words_of(content["kind"], content["rankings"])
    what = f"a model of {what}" if content["kind"] in ("rankings", "max-entropy") else what
    offers, choices = (word if content[f"{word}s"] == 1 else f"{word}s" for word in ("offer", "choice"))
    ended = "" if content["converged"] else " (stopped before the requested accuracy)"
    least = max(0.0, content["proven_least_distance"])  # in the text only: rounding can leave a bound just below 0
    lines = [
        *warning_lines(content),
        f"{round(content['choices'], 1):,.12g} {choices} from {content['offers']:,} {offers}; {what}{ended}.",
        f"Mean absolute error on these offers: {content['mean_absolute_error']:.4f}. Distance from the data: "
        f"{content['distance']:.4f} (weighted l2; sampling noise alone: {content['noise_distance']:.4f}). "
        f"No ranking model can be closer than {least:.4f}.",
    ]
    if "account" in content:
        lines.insert(0, shell_words(content["account"]["summary"]))
    if "prices" in content:
        lines.append(levels_line(content["prices"]))
    if "no_choice" in content:
        lines += _assumption(content["no_choice"])
    return "\n".join([*lines, f"Saved {content['model']}."])


def _assumption(content: dict[str, Any]) -> list[str]:
    """Return the assumption as text; with several, a table of each item's predicted shares and their span."""
    rows = content["predicted"]
    assumed = f"Assumed: {100 * content['assumed_share']:g} % took {content['item']!r}"
    if len(rows) < 2:
        return [f"{assumed}; the data do not contain this share."]
    width = max(len(shown(name)) for name in (*content["spans"], "predicted if"))
    heads = "".join(f"{100 * row['assumed_share']:>8g} %" for row in rows)
    lines = [
        f"{assumed} in the saved model. How much the assumption matters:",
        f"{'predicted if':<{width}}{heads}      span",
    ]
    for name, span in content["spans"].items():
        shares = "".join(f"{100 * row['shares'][name]:8.1f} %" for row in rows)
        lines.append(f"{shown(name):<{width}}{shares}{100 * span:8.1f} %")
    return lines
