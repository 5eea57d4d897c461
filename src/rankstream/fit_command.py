"""The command ``rankstream fit``: from a file of choices to a model file, within a time budget."""

from pathlib import Path
from typing import Any, cast

from rankstream._core.terminal import print_json, print_plain, progress
from rankstream.choice_files import read_choices
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers import Sensitivity, outside_sensitivity
from rankstream.estimation.budget import fit_within
from rankstream.estimation.estimate import Method
from rankstream.model_commands import as_items
from rankstream.models.entropy.model import EntropyModel
from rankstream.options import METHODS
from rankstream.solver.runs import Estimate

NO_CHOICE = "no choice"


def run(
    data: Path,
    out: Path,
    method: str,
    budget: float,
    tolerance: float,
    seed: int,
    as_json: bool,
    outside: str | None = None,
    no_choice: str | None = None,
    offer: str | None = None,
    **reading: Any,
) -> Estimate[Any]:
    """Read, fit, save, and say what was found; progress goes to standard error, and only on a terminal.

    With several assumed shares of people who bought nothing there is a fit for each, and the first is saved.
    """
    shares = as_shares(outside)
    check(out, method, offer, shares)
    found = read_choices(data, no_choice=None if shares else no_choice, **reading)
    seconds = budget / max(1, len(shares))
    with progress("starting") as tell:

        def fit(counts: ChoiceCounts) -> Estimate[Any]:
            return fit_within(
                counts, seconds, cast(Method, method), tolerance, seed, lambda text, part: tell(text, part, 1.0)
            )

        fits, sensitivity = (
            assumed(found.counts, fit, shares, no_choice or NO_CHOICE, offer)
            if shares
            else ([(found.counts, fit(found.counts))], None)
        )
    (counts, best), *_ = fits
    best.model.save(out)
    content = describe(best, counts.observations, counts.assortments.n_offers, out)
    if sensitivity is not None:
        content["no_choice"] = describe_assumption(sensitivity, no_choice or NO_CHOICE)
    if as_json:
        print_json(content)
    else:
        print_plain(as_text(content))
    return best


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
    counts: ChoiceCounts, fit: Any, shares: list[float], no_choice: str, offer: str | None
) -> tuple[list[tuple[ChoiceCounts, Estimate[Any]]], Sensitivity]:
    """A fit for each assumed share, and what they predict from an offer (of everything, if none is given)."""
    if all(no_choice in one for one in counts.assortments.offers):
        raise ValueError(f"Every offer holds {no_choice!r} already: leave --outside-share out, or name another item.")
    names = {str(item): item for item in (*counts.assortments.items, no_choice)}
    asked = list(names.values()) if offer is None else as_items(offer, names)
    asked += [] if no_choice in asked else [no_choice]
    fits: list[tuple[ChoiceCounts, Estimate[Any]]] = []

    def answer(grown: ChoiceCounts) -> dict[str, float]:
        fits.append((grown, fit(grown)))
        return {str(item): share for item, share in fits[-1][1].model.predict(asked).items()}

    return fits, outside_sensitivity(counts, answer, shares, no_choice)


def describe(fit: Estimate[Any], observations: float, offers: int, out: Path) -> dict[str, Any]:
    """What was found, as what JSON can hold."""
    dense = isinstance(fit.model, EntropyModel)
    return {
        "model": str(out),
        "kind": "max-entropy" if dense else "rankings",
        "rankings": None if dense else len(fit.model.weights),
        "choices": observations,
        "offers": offers,
        "rounds": fit.rounds,
        "converged": bool(fit.converged),
        "mean_absolute_error": float(fit.history.mae[-1]),
        "distance": float(fit.certificate.upper),
        "proven_least_distance": max(0.0, float(fit.certificate.lower)),
        "gap": float(fit.certificate.gap),
        "oracle_exact": bool(fit.certificate.exact),
    }


def describe_assumption(found: Sensitivity, no_choice: str) -> dict[str, Any]:
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
