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
