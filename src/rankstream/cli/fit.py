"""The command ``rankstream fit``: from a file of choices to a model file, within a time budget."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankstream._core.terminal import print_json, print_plain, progress
from rankstream.cli.asking import as_items
from rankstream.cli.options import AsJson, Data, ReadingOptions, reading_options, words

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import Sensitivity
    from rankstream.estimation.estimate import Estimate, Method

METHODS = ("auto", "max-entropy", "primal-dual")
NO_CHOICE = "no choice"


@reading_options(without=("outside_share",))
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")] = Path("model.json"),
    method: Annotated[
        str, typer.Option(help="auto, max-entropy or primal-dual.", autocompletion=words(*METHODS))
    ] = "auto",
    budget: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds, then the best model so far with its certificate, by any method."),
    ] = 60.0,
    tolerance: Annotated[float, typer.Option(min=0.0, help="When it is good enough.")] = 1e-3,
    offer: Annotated[
        str | None, typer.Option(help="With several shares: what to predict, items joined by ';'; else everything.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Ties between rankings, and the starts of priors.")] = 0,
    as_json: AsJson = False,
    outside_share: Annotated[
        str | None,
        typer.Option(help="The share assumed to have bought nothing; several, as 0.2,0.4, show how much it matters."),
    ] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Estimate a model from a file of choices, and save it."""
    from rankstream.estimation.budget import fit_within

    shares = as_shares(outside_share)
    check(out, method, offer, shares)
    no_choice = reading.no_choice or NO_CHOICE
    read = (replace(reading, no_choice=None) if shares else reading).read(data).counts
    seconds = budget / max(1, len(shares))
    with progress("starting") as tell:

        def fit_one(counts: "ChoiceCounts") -> "Estimate[Any]":
            return fit_within(
                counts, seconds, cast("Method", method), tolerance, seed, lambda text, part: tell(text, part, 1.0)
            )

        fits, sensitivity = (
            assumed(read, fit_one, shares, no_choice, offer) if shares else ([(read, fit_one(read))], None)
        )
    (counts, best), *_ = fits  # with several assumed shares, the first is saved
    best.model.save(out)
    content = describe(best, counts.observations, counts.assortments.n_offers, out)
    if sensitivity is not None:
        content["no_choice"] = describe_assumption(sensitivity, no_choice)
    if as_json:
        print_json(content)
    else:
        print_plain(as_text(content))


def check(out: Path, method: str, offer: str | None, shares: list[float]) -> None:
    """Refuse what would fail only after the work is done."""
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r}: choose one of {', '.join(map(repr, METHODS))}.")
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent} to save {out.name} in: make it first.")
    if out.is_dir():
        raise ValueError(f"{out} is a folder: name a file for the model with --out.")
    if offer is not None and len(shares) < 2:
        raise ValueError("--offer is for several assumed shares, such as --outside-share 0.2,0.4: leave it out.")


def as_shares(text: str | None) -> list[float]:
    """Numbers from 0 to 0.999, joined by commas."""
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
) -> "tuple[list[tuple[ChoiceCounts, Estimate[Any]]], Sensitivity]":
    """A fit for each assumed share, and what they predict from an offer (of everything, if none is given)."""
    from rankstream.data.readers import outside_sensitivity

    if all(no_choice in one for one in counts.assortments.offers):
        raise ValueError(f"Every offer holds {no_choice!r} already: leave --outside-share out, or name another item.")
    names = {str(item): item for item in (*counts.assortments.items, no_choice)}
    asked = list(names.values()) if offer is None else as_items(offer, names)
    asked += [] if no_choice in asked else [no_choice]
    fits: list[tuple[ChoiceCounts, Estimate[Any]]] = []

    def answer(grown: "ChoiceCounts") -> dict[str, float]:
        fits.append((grown, fit_one(grown)))
        return {str(item): share for item, share in fits[-1][1].model.predict(asked).items()}

    return fits, outside_sensitivity(counts, answer, shares, no_choice)


def describe(found: "Estimate[Any]", observations: float, offers: int, out: Path) -> dict[str, Any]:
    """What was found, as what JSON can hold."""
    from rankstream.models.rankings import RankingModel

    dense = not isinstance(found.model, RankingModel)
    return {
        "model": str(out),
        "kind": "max-entropy" if dense else "rankings",
        "rankings": None if dense else len(found.model.weights),
        "choices": observations,
        "offers": offers,
        "rounds": found.rounds,
        "converged": bool(found.converged),
        "mean_absolute_error": float(found.history.mae[-1]),
        "distance": float(found.certificate.upper),
        "proven_least_distance": max(0.0, float(found.certificate.lower)),
        "gap": float(found.certificate.gap),
        "oracle_exact": bool(found.certificate.exact),
    }


def describe_assumption(found: "Sensitivity", no_choice: str) -> dict[str, Any]:
    """What was assumed about those who bought nothing, and what the predictions owe to it."""
    return {
        "item": no_choice,
        "assumed_share": found.shares[0],
        "predicted": [
            {"assumed_share": share, "shares": dict(zip(found.names, answer, strict=True))}
            for share, answer in zip(found.shares, found.answers.tolist(), strict=True)
        ],
        "spans": found.spans,
    }


def as_text(content: dict[str, Any]) -> str:
    """The same in sentences."""
    rankings = "1 ranking" if content["rankings"] == 1 else f"{content['rankings']} rankings"
    what = "all rankings, by maximum entropy" if content["kind"] == "max-entropy" else rankings
    offers, choices = (word if content[f"{word}s"] == 1 else f"{word}s" for word in ("offer", "choice"))
    ended = "" if content["converged"] else " (cut short before it was good enough)"
    lines = [
        f"{round(content['choices'], 1):,.12g} {choices} from {content['offers']:,} {offers}; "
        f"a model of {what}{ended}.",
        f"Mean absolute error on these offers {content['mean_absolute_error']:.4f}; weighted l2 distance "
        f"{content['distance']:.4f}, and no ranking model is nearer than {content['proven_least_distance']:.4f}.",
    ]
    if "no_choice" in content:
        lines += _assumption(content["no_choice"])
    return "\n".join([*lines, f"Saved {content['model']}."])


def _assumption(content: dict[str, Any]) -> list[str]:
    """The assumption, and with several a line for each item: its predicted share under each, and how far they span."""
    rows = content["predicted"]
    assumed = f"Assumed: {100 * content['assumed_share']:g} % took {content['item']!r}"
    if len(rows) < 2:
        return [f"{assumed}; the data cannot tell."]
    width = max(len(name) for name in (*content["spans"], "predicted if"))
    heads = "".join(f"{100 * row['assumed_share']:>8g} %" for row in rows)
    lines = [
        f"{assumed} in the model that is saved. What the predictions owe to that:",
        f"{'predicted if':<{width}}{heads}      span",
    ]
    for name, span in content["spans"].items():
        shares = "".join(f"{100 * row['shares'][name]:8.1f} %" for row in rows)
        lines.append(f"{name:<{width}}{shares}{100 * span:8.1f} %")
    return lines
