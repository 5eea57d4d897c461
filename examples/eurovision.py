"""The Eurovision Song Contest as a stream: every year other countries sing, so offers never return.

Run it as ``python examples/eurovision.py FILE.csv [FOLDER]``. A row of the file is what one country gave another in one
year (year, from country, to country, points; only finals are taken, and a voter chooses the song with its most points),
or one vote: year, round, offered, chosen; then every vote is held against the offer that it was given from.

Two things about these data. A voter cannot choose the own song; where voters are not named it stays in the offer, so
that every model, the uniform guess too, gives it a share that it cannot get. And where songs without a single point are
missing from the offers, those are partly known only after the vote, which favours all models alike.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rankstream import Live, Record, load_model

COLUMNS = {
    "year": ("year",),
    "voter": ("from_country", "from country", "from_country_id"),
    "song": ("to_country", "to country", "to_country_id"),
    "points": ("points", "total_points"),
    "round": ("(semi-) final", "round"),
    "jury": ("jury or televoting",),
}
HALF_LIVES = (None, 200.0)
EPSILON = 0.1  # of a uniform choice, mixed into predictions


def votes(table: pd.DataFrame) -> pd.DataFrame:
    """The finals, with the columns year, voter, song and points; nobody votes for the own song."""
    plain = {str(column).strip().lower(): column for column in table.columns}
    given = {role: plain[name] for role, names in COLUMNS.items() for name in names[::-1] if name in plain}
    for role in ("year", "voter", "song", "points"):
        if role not in given:
            raise ValueError(f"The columns are {list(table.columns)}: there is none for the {role}.")
    chosen = table.rename(columns={column: role for role, column in given.items()})
    if "round" in chosen:
        chosen = chosen[chosen["round"].astype(str).str.lower().isin(["f", "final", "grand-final"])]
    chosen = chosen[[role for role in given if role != "round"]].dropna()
    for role in ("voter", "song"):
        chosen[role] = chosen[role].astype(str).str.strip()
    return chosen[chosen["voter"] != chosen["song"]]


def contests(table: pd.DataFrame) -> Iterator[tuple[int, list[Record]]]:
    """Year by year, what each voter chose of all songs in the final; or what is written, where that is the table."""
    if {"year", "offered", "chosen"} <= set(table.columns):
        stages = table["round"].astype(str) if "round" in table.columns else pd.Series("", index=table.index)
        order = stages.str.lower().str.startswith("f").rename("final")  # semi-finals come before the final
        for key, rows in table.groupby([table["year"], order, stages], sort=True):
            pairs = zip(rows["offered"], rows["chosen"], strict=True)
            yield int(str(key[0])), [Record(tuple(str(offered).split(";")), str(chosen)) for offered, chosen in pairs]
        return
    for year, ballots in votes(table).groupby("year", sort=True):
        songs = tuple(sorted(ballots["song"].unique()))
        voters = [role for role in ("voter", "jury") if role in ballots]
        best = ballots.sort_values("points", ascending=False, kind="stable").groupby(voters, sort=True).first()
        yield int(str(year)), [Record(songs, song) for song in best[best["points"] > 0]["song"]]


def walk_forward(table: pd.DataFrame, half_life: float | None) -> float:
    """The mean log-likelihood of each contest's choices, predicted from the contests before it."""
    live, scores = Live(half_life=half_life, rounds=50), []
    for _, records in contests(table):
        if live.records:
            model = live.model
            known = set(model.items)
            shares = {offer: _shares(model, offer, known) for offer in {record.offered for record in records}}
            for record in records:
                share = shares[record.offered].get(record.chosen, 0.0)
                scores.append(log((1.0 - EPSILON) * share + EPSILON / len(record.offered)))
        live.observe(records)
    return sum(scores) / len(scores)


def _shares(model: Any, offer: tuple[Any, ...], known: set[Any]) -> dict[Any, float]:
    """What the model says of the songs that it knows; new countries share what is left to a uniform guess."""
    songs = [song for song in offer if song in known]
    return dict(model.predict(songs)) if songs else {}


def main(path: str, folder: Path) -> str:
    """Write the stream, follow it with ``rankstream stream``, score half-lives, and draw the last favourites."""
    table = pd.read_csv(path)
    years = list(contests(table))
    stream = folder / "contests.jsonl"
    lines = (json.dumps({"offered": r.offered, "chosen": r.chosen}) for _, records in years for r in records)
    stream.write_text("\n".join(lines) + "\n", encoding="utf-8")
    state = folder / "live"
    follow = ["stream", str(stream), "--out", str(state), "--to-end", "--half-life", "200"]
    subprocess.run([sys.executable, "-m", "rankstream", *follow], check=True)
    model = load_model(state / "model.json")
    last = years[-1][1][0].offered
    favourites = sorted(model.predict(last).items(), key=lambda pair: pair[1])
    figure = Figure(figsize=(6, 0.25 * len(last) + 1), layout="constrained")
    axes = figure.subplots()
    axes.barh([str(name) for name, _ in favourites], [100 * share for _, share in favourites])
    axes.set(xlabel="first choices, %", title=f"The final of {years[-1][0]}, as the stream sees it")
    figure.savefig(folder / "eurovision.png", dpi=120)
    countries = {country for _, records in years for record in records for country in record.offered}
    uniform = sum(-log(len(record.offered)) for _, records in years[1:] for record in records)
    uniform /= sum(len(records) for _, records in years[1:])
    scores = {}
    for half_life in HALF_LIVES:
        name = "no forgetting" if half_life is None else f"half-life {half_life:g}"
        scores[name] = walk_forward(table, half_life)
    best = max(scores, key=lambda name: scores[name])
    if scores[best] <= uniform:
        verdict = "No model predicts the contest to come better than a uniform guess"
    else:
        verdict = f"The model with {best} predicts the contest to come better than a uniform guess"
    report = [f"{verdict}: {scores[best]:.4f} against {uniform:.4f} nats per choice."]
    report.append(f"{len(years)} contests, {sum(len(r) for _, r in years):,} choices, {len(countries)} countries")
    report.append(f"{'uniform':>16} {uniform:8.4f}")
    return "\n".join([*report, *(f"{name:>16} {score:8.4f}" for name, score in scores.items())])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("Give a CSV file, and a folder if you like: python examples/eurovision.py FILE.csv FOLDER")
    out = Path(sys.argv[2] if len(sys.argv) == 3 else tempfile.mkdtemp(prefix="eurovision-"))
    out.mkdir(parents=True, exist_ok=True)
    print(main(sys.argv[1], out))
    print(f"In {out}: contests.jsonl, live/model.json, eurovision.png")
