"""The command ``rankstream fit``: from a file of choices to a model file, within a time budget."""

from dataclasses import replace
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
from rankstream.reports.origin import DISTANCE, warning_lines

if TYPE_CHECKING:
    from rankstream.data.readers import Reading
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


@reading_options()
def fit(
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    method: Annotated[str, choice(*METHODS)] = "auto",
    budget: Annotated[float | None, typer.Option(min=0.0)] = None,
    timeout: Annotated[float | None, typer.Option(min=0.0)] = None,
    tolerance: Annotated[float | None, typer.Option(min=0.0)] = None,
    no_standard_errors: Annotated[bool, typer.Option("--no-standard-errors")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
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
    method: Estimation method. auto: by the size of the data; max-entropy: best for unseen offers; nearest: closest to
        the data; mnl: one logit; latent-class: several. For the others, see choose-a-method.md in docs/how-to.
    out: Output file (default: model.json); with --by, output folder (default: models).
    budget: CPU seconds after which the best model so far is saved (default: no limit; for nearest and primal-dual 600,
        or 60 with very many items).
    timeout: Like --budget, in wall-clock seconds. The result then depends on how busy the machine is.
    tolerance: Accuracy at which to stop (smaller is slower): log-likelihood per choice for max-entropy and mle,
        certified gap for nearest, mean absolute error for primal-dual.
    no_standard_errors: Skip the 10 refits for standard errors: a little faster, but 'show' needs --data for intervals.
    since: Ignore choices before this time, such as 2024-05-16 (needs a time column).
    half_life: Count older choices less: with 30d, half after 30 days (needs a time column).
    seed: Random seed of the solver: for starting points, and for the choice between equally good rankings.
    by: Fit one model for each value of these columns, such as store,category.
    pool: With --by: let small markets borrow strength from the others.
    attributes: CSV table of items and their attributes. It helps if there are few choices, and lets you predict new
        items ('predict --items').
    """
    from rankstream.estimation.estimate import choices_by_em, fit_within
    from rankstream.estimation.methods import make
    from rankstream.estimation.uncertain import expected_choices
    from rankstream.models.answers import OUTSIDE_NAMES

    chosen: Any = method
    if attributes is not None:
        from rankstream.data.attributes import read_attributes

        chosen, tolerance = make(method, tolerance, attributes=read_attributes(attributes)), None
    if by is not None or reading.category is not None:
        from rankstream.cli.markets import fit_markets, refuse

        options = {"--tolerance": tolerance, "--since": since, "--half-life": half_life, "--budget": budget}
        options |= {"--timeout": timeout, "--between uncertain": reading.between == "uncertain"}
        refuse("many markets", options)
        how = {"method": chosen, "n_jobs": jobs, "out": out or Path("models"), "pool": pool, "seed": seed}
        how["errors"] = not no_standard_errors
        fit_markets(data, by or "", reading, as_json, **how)
        return
    out = out or Path("model.json")
    check_target(out, "the model with --out")
    if reading.outside_share is not None and reading.between == "uncertain":
        raise ValueError("--between uncertain does not work with --outside-share: leave one of them out.")
    choices = reading.read(data, since=since, half_life=half_life, time_slices=TIME_SLICES, look=True)
    unused, counts = unused_columns(choices, as_json), choices.counts
    listed = [str(item) for item in counts.assortments.items if str(item).strip().lower() in OUTSIDE_NAMES]
    if reading.no_choice is not None and (doubled := [item for item in listed if item != reading.no_choice]):
        print_note(f"Warning: {reading.no_choice!r} is added to every offer, but the data have {doubled[0]!r} already.")
    if choices.uncertain is not None:
        counts = choices_by_em(choices.uncertain, make(chosen, tolerance), seed)
    with progress("starting") as tell:
        best = fit_within(
            counts, budget=budget, timeout=timeout, method=chosen, tolerance=tolerance, seed=seed,
            errors=not no_standard_errors, watch=tell,
        )  # fmt: skip
    if choices.uncertain is not None and choices.account is not None:
        counts = expected_choices(choices.uncertain, best.model)  # what commands read for this model
        best.model.note(uncertain=choices.account.doubt)
    choices = replace(choices, counts=counts)
    content = describe_fit(best, choices, out) | {"unused": unused}
    content["changed"] = None if half_life else describe_change(choices)
    best.model.note(**origin(best, content, choices, reading, data, seed)).save(out)
    if reading.outside_share is not None:
        content["no_choice"] = {"item": reading.no_choice or NO_CHOICE, "assumed_share": reading.outside_share}
    print_answer(as_json, content, as_text(content))
    if content["changed"] is not None:
        print_note(content["changed"]["sentence"])


def describe_fit(fit: "Estimate[Any]", choices: "Reading", out: Path) -> dict[str, Any]:
    """Return the facts about a fit for JSON."""
    from rankstream.estimation.misfit import noise_distance
    from rankstream.models.rankings import RankingModel

    counts, proof = choices.counts, fit.certificate
    content = {
        "model": str(out), "method": fit.method.name, "kind": kind_of(fit.model),
        "rankings": len(fit.model.weights) if isinstance(fit.model, RankingModel) else None,
        "choices": counts.observations, "offers": counts.assortments.n_offers,
        "rounds": fit.rounds, "converged": bool(fit.converged), "cut_short": bool(fit.cut_short),
        "mean_absolute_error": float(fit.history.mae[-1]),
        "distance": float(proof.upper), "noise_distance": noise_distance(fit.model, counts),
        "proven_least_distance": float(proof.lower), "gap": float(proof.gap), "oracle_exact": bool(proof.exact),
    }  # fmt: skip
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
        f"again, with --since {when} for the later ones alone, or with --half-life 30d, which weights older ones less.",
    }


def origin(
    best: "Estimate[Any]", content: dict[str, Any], choices: "Reading", reading: ReadingOptions, data: Path, seed: int
) -> dict[str, Any]:
    """Return what is saved in the model's file about the fit, the data and how they were read."""
    from rankstream._core.version import VERSION

    options = {name: getattr(reading, name) for name in (*REMEMBERED, *SALES)}
    noted: dict[str, Any] = {"file": shown(data.name), "digest": choices.counts.digest()}
    noted |= {"records": choices.rows, "format": choices.format}
    return {
        "method": best.method.name,
        "seed": seed,
        "certificate": {name: content[name] for name in CERTIFIED},
        "choices": content["choices"],
        "data": noted,
        "reading": {name: value for name, value in options.items() if name in REMEMBERED or value is not None},
        "times": None if choices.times is None else [as_time(time) for time in choices.times],
        "changed": None if content["changed"] is None else content["changed"]["sentence"],
        "unused": content["unused"],
        "version": VERSION,
        **({} if choices.prices is None else {"prices": choices.prices.to_content()}),
    }


def as_text(content: dict[str, Any]) -> str:
    """Return the facts about a fit as text."""
    what = words_of(content["kind"], content["rankings"])
    what = f"a model of {what}" if content["kind"] in ("rankings", "max-entropy") else what
    offers, choices = (word if content[f"{word}s"] == 1 else f"{word}s" for word in ("offer", "choice"))
    share = content["no_choice"]["assumed_share"] if "no_choice" in content else 0.0
    added = f", {round(share * content['choices'], 1):,.12g} of them assumed" if share else ""
    ended = "" if content["converged"] else " (stopped before the requested accuracy)"
    least = max(0.0, content["proven_least_distance"])  # in the text only: rounding can leave a bound just below 0
    lines = [
        *warning_lines(content),
        f"{round(content['choices'], 1):,.12g} {choices} from {content['offers']:,} {offers}{added}; {what}{ended}.",
        f"Mean absolute error on these offers: {content['mean_absolute_error']:.4f}. Distance from the data: "
        f"{content['distance']:.4f} ({DISTANCE}; sampling noise alone: {content['noise_distance']:.4f}). "
        f"No ranking model can be closer than {least:.4f}.",
    ]
    if "account" in content:
        lines.insert(0, shell_words(content["account"]["summary"]))
    if "prices" in content:
        lines.append(levels_line(content["prices"]))
    if "no_choice" in content:
        assumed = f"{100 * content['no_choice']['assumed_share']:g} % took {content['no_choice']['item']!r}"
        lines.append(f"Assumed: {assumed}; the data do not contain this share.")
    return "\n".join([*lines, f"Saved {content['model']}."])
