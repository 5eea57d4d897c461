"""The commands that ask a saved model: ``rankstream predict`` and ``rankstream show``."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.table import Table

from rankstream._core.terminal import console, print_json, print_note, print_plain, progress
from rankstream._core.types import Label
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.files import load_model
from rankstream.models.rankings import RankingModel

Model = RankingModel | EntropyModel
DRAWN = 1000


def predict(
    model_path: Path,
    offers: list[str],
    file: Path | None,
    as_json: bool,
    interval: float | None = None,
    data: Path | None = None,
    seed: int = 0,
    **reading: Any,
) -> None:
    """Print the choice probabilities of offers, each a text of items joined by ";", or a line of a file.

    With an interval, they come with its ends, from a bootstrap on the data that the model was fitted to; these must be
    read as they were then (with the options of ``readers.read``).
    """
    if bool(offers) == (file is not None):
        raise ValueError("Name the offers to predict either with --offer (once or more) or with --offers FILE.")
    if (interval is None) != (data is None):
        raise ValueError("Intervals need the choices the model was fitted to: give --interval and --data together.")
    model = load_model(model_path)
    texts = offers if file is None else read_offers(file)
    by_name = _names(model)
    wanted = [as_items(text, by_name) for text in texts]
    found: list[dict[Label, tuple[float, ...]]]
    if interval is None or data is None:
        found = [{item: (share,) for item, share in model.predict(items).items()} for items in wanted]
    else:
        found = with_intervals(model, data, wanted, interval, seed, **reading)
    if as_json:
        print_json([_as_content(text, shares) for text, shares in zip(texts, found, strict=True)])
        return
    for text, shares in zip(texts, found, strict=True):
        print_plain(text)
        for item, (share, *ends) in sorted(shares.items(), key=lambda pair: -pair[1][0]):
            margin = f" [{100 * ends[0]:5.1f}, {100 * ends[1]:5.1f} ]" if ends else ""
            print_plain(f"  {100 * share:5.1f} %{margin}  {item}")


def with_intervals(
    model: Model, data: Path, offers: list[list[Label]], interval: float, seed: int, **reading: Any
) -> list[dict[Label, tuple[float, ...]]]:
    """Shares with the ends of their intervals; progress goes to standard error, and only on a terminal."""
    from rankstream._core.arguments import number_between
    from rankstream.data.readers import read
    from rankstream.estimation.intervals import Bootstrap

    number_between("--interval", interval, 1e-6, 1.0 - 1e-6)
    choices = read(data, **reading)
    if choices.problems.total:
        print_note(choices.problems.summary())
    with progress("refitting") as tell:
        found = Bootstrap(
            choices.counts, "max-entropy" if isinstance(model, EntropyModel) else "primal-dual", seed=seed, model=model,
            watch=lambda done, total: tell("refitting", done, total),
        )  # fmt: skip
    return [dict(found.predict(offer, interval).items()) for offer in offers]


def _as_content(text: str, shares: dict[Label, tuple[float, ...]]) -> dict[str, Any]:
    content: dict[str, Any] = {"offer": text, "shares": {str(item): row[0] for item, row in shares.items()}}
    if all(len(row) == 3 for row in shares.values()):
        content["intervals"] = {str(item): list(row[1:]) for item, row in shares.items()}
    return content


def _names(model: Model) -> dict[str, Label]:
    by_name: dict[str, Label] = {}
    for item in model.items:
        if by_name.setdefault(str(item).strip(), item) is not item:
            raise ValueError(f"The model has two items that read {item!s}: ask it from Python, where they differ.")
    return by_name


def read_offers(file: Path) -> list[str]:
    """The lines of a text file, without empty ones; a first line "offered" is a heading."""
    if not file.is_file():
        raise ValueError(f"There is no file {file}: name a text file with an offer in every line.")
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text file in UTF-8 ({error}): save it as one.") from None
    found = [line[1:-1] if line[0] == line[-1] == '"' else line for line in lines if line]
    found = found[1:] if found and found[0] == "offered" else found
    if not found:
        raise ValueError(f"{file} holds no offers: write one in every line, its items joined by ';'.")
    return found


def as_items(text: str, by_name: dict[str, Label]) -> list[Label]:
    """The items that a text names, joined by ";"; those with a ";" in their names can be told in a JSON list."""
    names = [name.strip() for name in text.split(";")]
    if text.lstrip().startswith("[") and not all(name in by_name for name in names):
        with suppress(ValueError):
            names = [str(name).strip() for name in json.loads(text)]
    for name in names:
        if name not in by_name:
            known = ", ".join(map(repr, by_name))
            raise ValueError(f"The offer {text!r} holds {name!r}, which the model does not know: it knows {known}.")
    return [by_name[name] for name in names]


def show(model_path: Path, top: int, as_json: bool, seed: int = 0) -> None:
    """Print the customer types, the shares from everything, and who gains when an item goes."""
    model = load_model(model_path)
    content = describe(model, top, seed)
    if as_json:
        print_json(content)
        return
    rankings = content["rankings"]
    number = "all rankings, by maximum entropy" if rankings is None else f"{rankings} rankings"
    kind = "1 ranking" if rankings == 1 else number
    drawn = f", among {DRAWN:,} customers drawn" if rankings is None else ""
    print_plain(f"A model of {len(model.items)} items: {kind}.\n\nThe largest customer types{drawn}:")
    last = [] if content["no_choice"] is None else [f"({content['no_choice']})"]
    for segment in content["segments"]:
        print_plain(f"  {100 * segment['share']:5.1f} %  {' > '.join([*segment['ranking'], *last])}")
    table = Table(box=None, pad_edge=False)
    for head in ("item", "share of everything", "who gains when it is gone"):
        table.add_column(head)
    for row in content["items"]:
        gains = ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(row["gains"].items())[:3] if share > 0)
        table.add_row(row["item"], f"{100 * row['share']:.1f} %", gains)
    print_plain("")
    console().print(table)


def describe(model: Model, top: int, seed: int = 0) -> dict[str, Any]:
    """What ``show`` tells, as what JSON can hold; the types of a model of all rankings are drawn with the seed."""
    if len(model.items) < 2:
        raise ValueError("The model knows one item only: there is nothing to show.")
    moves = model.substitution()
    types = model.segments(top, DRAWN, seed) if isinstance(model, EntropyModel) else model.segments(top)
    return {
        "kind": "max-entropy" if isinstance(model, EntropyModel) else "rankings",
        "rankings": None if isinstance(model, EntropyModel) else len(model.weights),
        "no_choice": None if model.no_choice_code is None else str(model.items[model.no_choice_code]),
        "segments": [{"ranking": [str(item) for item in segment.ranking], "share": segment.share} for segment in types],
        "items": [
            {
                "item": str(item),
                "share": float(share),
                "gains": {str(other): part for other, part in moves.gains(item).items()},
            }
            for item, share in zip(moves.items, moves.before, strict=True)
        ],
    }
