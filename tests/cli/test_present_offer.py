"""What is on offer today: one answer for every command that compares with it."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from shell import run


def test_decide_and_report_compare_with_the_same_offer(tmp_path: Path) -> None:
    lines = ["time,offered,chosen"]
    for day in range(120):  # pie leads in the last four weeks, cake in the last twenty days
        offer = ("tea", "pie" if 92 <= day < 109 else "cake", "nothing")
        begin = datetime(2026, 1, 1) + timedelta(days=day)
        lines += [f"{begin + timedelta(minutes=n)},{';'.join(offer)},{offer[n % 3]}" for n in range(10)]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\ncake,3\n")
    given = ["--margins", "items.csv", "--data", "visits.csv", "--no-intervals", "--json"]
    fit = ["fit", "visits.csv", "--method", "mnl", "--no-standard-errors", "--no-choice", "nothing"]
    assert run(*fit, cwd=tmp_path).returncode == 0
    decided = json.loads(run("decide", "model.json", *given, cwd=tmp_path).stdout)
    done = run("report", "model.json", *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert decided["context"]["present"] == ["pie", "tea"]
    assert reported["decision"]["context"]["present"] == decided["context"]["present"]


def test_a_tie_and_missing_choices_are_said(tmp_path: Path) -> None:
    """Of offers that were shown equally often, today's is the one whose items were shown most, as is said."""
    offers = ("tea;nothing", "pie;nothing", "pie;tea;nothing")
    lines = [
        f"{offer},{item},{number}"
        for offer in offers
        for item, number in zip(offer.split(";"), (3, 2, 1), strict=False)
    ]
    lines = [*lines, "tea;nothing,tea,1", "pie;nothing,pie,1"]  # six of each
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "visits.csv").write_text("\n".join(["offered,chosen,count", *lines]) + "\n")
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\n")
    fit = ["fit", "data/visits.csv", "--method", "mnl", "--no-choice", "nothing"]
    assert run(*fit, cwd=tmp_path).returncode == 0
    decide = ["decide", "model.json", "--margins", "items.csv"]
    alone = run(*decide, cwd=tmp_path).stderr
    assert alone == (
        "No comparison with today's offer and no intervals: the file of choices is not in the model's folder. "
        "Add --data FILE.\n"
    )
    said = run(*decide, "--data", "data/visits.csv", "--no-intervals", cwd=tmp_path)
    assert said.stderr == ""
    assert said.stdout.startswith(
        "Today's offer (one of the 3 most frequent, shown 6 times each; set yours with --present): pie, tea: earns "
    )
    other = "offered,chosen,count\npie;rum;nothing,rum,9\n"
    (tmp_path / "other.csv").write_text(other)
    wrong = run(*decide, "--data", "other.csv", cwd=tmp_path)
    told = "other.csv is not the file the model was fitted to: its item 'rum' is not in the model. Give that file."
    assert (wrong.returncode, wrong.stderr) == (2, f"rankstream: {told}\n")
    dated = [f"{day},{offer},{item}" for day, offer, item in (
        *[("2026-01-05", "tea;nothing", "tea")] * 30, *[("2026-03-05", "pie;nothing", "pie")] * 20
    )]  # fmt: skip
    (tmp_path / "dated.csv").write_text("\n".join(["time,offered,chosen", *dated]) + "\n")
    said = run(*decide, "--data", "dated.csv", "--no-intervals", cwd=tmp_path)
    assert "(the most frequent of the last four weeks, shown 20 times; set yours with --present): pie" in said.stdout
    assert not run(*decide, "--present", "tea", "--no-intervals", cwd=tmp_path).stderr


def test_customers_who_leave_are_known_beside_a_best_seller_and_an_assumed_share(tmp_path: Path) -> None:
    """An item that is always on offer hides which one means leaving; what was declared does not."""
    sold = ["tea;cake{0},tea,30", "tea;cake{0},cake,20", "tea;pie{0},tea,25", "tea;pie{0},pie,25", "tea{0},tea,40"]
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\ncake,3\n")
    for name, gone, options in (
        ("left", ";left", ["--no-choice", "left"]),
        ("left", "", ["--outside-share", "0.2", "--no-choice", "left"]),
        ("no choice", "", ["--outside-share", "0.2"]),
    ):
        lines = [line.format(gone) for line in sold] + ([f"tea{gone},left,10"] if gone else [])
        (tmp_path / "visits.csv").write_text("\n".join(["offered,chosen,count", *lines]) + "\n")
        fit = run("fit", "visits.csv", "--method", "mnl", "--no-standard-errors", *options, cwd=tmp_path)
        assert fit.returncode == 0, fit.stderr
        predicted = run("predict", "model.json", "--offer", "tea;cake", cwd=tmp_path).stdout
        assert f"('{name}' was added" in predicted
        decided = run("decide", "model.json", "--margins", "items.csv", cwd=tmp_path)
        assert decided.returncode == 0, decided.stderr
        assert ("No intervals: there are none for an assumed share" in decided.stderr) is (not gone)
        assert name not in decided.stdout.splitlines()[0]
