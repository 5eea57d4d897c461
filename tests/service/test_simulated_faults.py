"""Faults that replay: 200 seeds without a violation, and known bugs that are found when they are put back."""

import pytest

from fault_bugs import BUGS
from simulate_faults import first_seed, play, play_seed, schedule, shortest


def test_two_hundred_seeds_violate_nothing() -> None:
    outcomes = {seed: play_seed(seed) for seed in range(200)}
    assert {seed: outcome.problem for seed, outcome in outcomes.items() if outcome.problem} == {}
    faults = set().union(*(outcome.faults for outcome in outcomes.values()))
    assert faults == {
        "clock jump", "crash", "doubled", "failed write", "full disk", "late", "lost answer", "lost request", "pause",
        "power loss", "torn write",
    }  # fmt: skip


def test_a_seed_replays() -> None:
    assert play_seed(7) == play_seed(7)
    assert play_seed(7, "key-apart") == play_seed(7, "key-apart")


@pytest.mark.parametrize(
    ("bug", "seed", "problem"),
    [
        ("key-apart", 7, "stored 2 times instead of 1 to 1"),
        ("state-first", 3, "has other records than the log until there"),
        ("position-first", 3, "has other records than the log until there"),
        ("sweep-unlearned", 1, "not learned are gone from the log"),
        ("retry-without-key", 0, "stored 2 times instead of 1 to 1"),
        ("lease-without-fence", 299, "the position of the state fell"),
    ],
)
def test_known_bugs_are_found(bug: str, seed: int, problem: str) -> None:
    """By the first of all seeds that finds each."""
    assert problem in play_seed(seed, bug).problem
    assert first_seed(bug, min(seed, 20)) is None


def test_all_bugs_are_tried() -> None:
    (mark,) = test_known_bugs_are_found.pytestmark  # type: ignore[attr-defined]
    assert {bug for bug, _, _ in mark.args[1]} == set(BUGS)


def test_a_failure_is_shortened() -> None:
    steps = shortest(schedule(1), "sweep-unlearned")
    assert [step["do"] for step in steps] == ["begin", "client", "sweep"]
    assert play(steps, "sweep-unlearned").problem
    assert not play(steps).problem
