"""The claims of Section 5, on data that keep arriving (Figures 1 and 2)."""

from itertools import pairwise

from experiments.claims.verdicts import (
    SAME,
    Claim,
    Found,
    Verdict,
    correlated,
    graded,
    less,
    resting_on,
    spread,
    yes_no,
)
from experiments.tables import Results


def _grid(found: Found) -> tuple[Results, list[str], list[int]]:
    runs = found["metrics-dynamic"]
    return runs, runs.values("method"), runs.values("per_round")


def same_error(found: Found) -> Verdict:
    """Test error over methods, and over observations per round."""
    runs, methods, sizes = _grid(found)
    by_method = max(spread([runs.where(method=name, per_round=size) for name in methods], "test_mae") for size in sizes)
    by_size = max(spread([runs.where(method=name, per_round=size) for size in sizes], "test_mae") for name in methods)
    text = (
        f"Largest mean test MAE over smallest: {by_method:.2f} between methods at the same number of observations a "
        f"round, {by_size:.2f} between numbers of observations with the same method."
    )
    if by_method <= SAME < by_size:
        return Verdict("holds in part", f"{text} For the method, not for the number of observations.")
    return yes_no(max(by_method, by_size) <= SAME, text)


def fewer_rounds(found: Found) -> Verdict:
    """Rounds fall as observations per round grow."""
    runs, methods, sizes = _grid(found)
    falls = 0
    for name in methods:
        means = [runs.where(method=name, per_round=size).mean("rounds") for size in sizes]
        falls += all(second < first for first, second in pairwise(means))
    first, last = (runs.where(method="MD_ns", per_round=size).mean("rounds") for size in (sizes[0], sizes[-1]))
    text = (
        f"Mean rounds fall at every step from {sizes[0]} to {sizes[-1]} a round for {falls} of {len(methods)} methods; "
        f"MD_ns from {first:.0f} to {last:.0f}."
    )
    return graded(falls, len(methods), text)


def best_method(found: Found) -> Verdict:
    """MD_ns against every other method in rounds."""
    runs, methods, sizes = _grid(found)
    others = [name for name in methods if name != "MD_ns"]
    wins, margins = 0, []
    for size in sizes:
        ours = runs.where(method="MD_ns", per_round=size)
        rivals = [runs.where(method=name, per_round=size) for name in others]
        wins += all(less(ours, rival, "rounds") for rival in rivals)
        margins.append(min(rival.mean("rounds") for rival in rivals) / ours.mean("rounds"))
    text = (
        f"MD_ns needs the fewest rounds, by more than two standard errors, at {wins} of {len(sizes)} numbers of "
        f"observations a round; the next best needs {min(margins):.2f} to {max(margins):.2f} times as many."
    )
    return graded(wins, len(sizes), text)


def dynamic_beats_naive(found: Found) -> Verdict:
    """FW_dyn against FW_naive in rounds, by both readings of the stopping rule."""
    runs, _, sizes = _grid(found)
    wins, minor, parts, factors = 0, 0, [], []
    for size in sizes:
        dyn, naive = (runs.where(method=name, per_round=size) for name in ("FW_dyn", "FW_naive"))
        factor = naive.mean("rounds") / dyn.mean("rounds")
        wins, minor = wins + less(dyn, naive, "rounds"), minor + (factor <= 1.5)
        latest = naive.mean("rounds_by_latest")
        factors.append(latest / dyn.mean("rounds"))
        parts.append(f"{dyn.mean('rounds'):.0f}, {naive.mean('rounds'):.0f} and {latest:.0f} at {size}")
    text = (
        f"Mean rounds of FW_dyn, of FW_naive, and of FW_naive stopped against p_t: {'; '.join(parts)} a round. FW_dyn "
        f"is ahead by more than two standard errors at {wins} of {len(sizes)}; the difference is minor (less than half "
        f"as many rounds again) at {minor}.{_cut_off(runs)}"
    )
    if wins == len(sizes) and minor < wins:
        reading = (
            f"stopped against p_t, its own aim, FW_naive takes {min(factors):.2f} to {max(factors):.2f} times as many"
        )
        return Verdict(
            "holds in part", f"{text} Minor it is only with many a round, or by the other reading: {reading}."
        )
    return graded(wins, len(sizes), text)


def _cut_off(runs: Results) -> str:
    """A warning where means are of runs that met the limit of rounds."""
    cells = [cell for cell in runs.where(method="FW_naive").cells() if cell.mean("converged") < 1.0]
    parts = [f"{100 * (1 - cell.mean('converged')):.0f} % of its runs at {cell.setting('per_round')}" for cell in cells]
    return f" FW_naive met the limit of rounds in {', '.join(parts)}, which count as the limit." if parts else ""


def rankings_follow_rounds(found: Found) -> Verdict:
    """Rank correlation of rankings and rounds over all dynamic runs."""
    return correlated(found["metrics-dynamic"], "rankings", "rounds")


def lower_with_fewer(found: Found) -> Verdict:
    """At a given number of observations, fewer a round means lower errors."""
    runs = found["metrics-dynamic-obs"]
    sizes, marks = runs.values("per_round"), runs.values("mark")
    parts, good, total = [], 0, 0
    for metric in ("mae", "latest_mae", "truth_mae", "test_mae"):
        right = sum(
            runs.where(per_round=few, mark=mark).mean(metric) < runs.where(per_round=many, mark=mark).mean(metric)
            for mark in marks
            for few, many in pairwise(sizes)
        )
        cases = len(marks) * (len(sizes) - 1)
        good, total = (good + right, total + cases) if metric in ("mae", "test_mae") else (good, total)
        parts.append(f"{metric} {right} of {cases}")
    text = (
        f"Lower at the next smaller number of observations a round, in how many cases: {', '.join(parts)}."
        f"{resting_on(runs)}"
    )
    return graded(good, total, text, "Not at every single point, but on the whole.")


def no_need_to_wait(found: Found) -> Verdict:
    """With slow arrivals, starting now gives the lowest error at any number of observations."""
    runs = found["metrics-dynamic-obs"]
    slow, fast = runs.values("per_round")[0], runs.values("per_round")[-1]
    marks = runs.values("mark")
    better = sum(
        runs.where(per_round=slow, mark=mark).mean("test_mae") < runs.where(per_round=fast, mark=mark).mean("test_mae")
        for mark in marks
    )
    first, last = (runs.where(per_round=slow, mark=mark).mean("test_mae") for mark in (marks[0], marks[-1]))
    text = (
        f"With {slow} a round the test MAE is below that with {fast} at {better} of {len(marks)} points; it goes from "
        f"{first:.4f} at {marks[0]:,} observations to {last:.4f} at {marks[-1]:,}.{resting_on(runs)}"
    )
    if better == len(marks) and last < 0.9 * first:
        return Verdict("holds in part", f"{text} Rounds should not wait, but more observations do lower the error.")
    return graded(better, len(marks), text)


def no_need_to_hurry(found: Found) -> Verdict:
    """With fast arrivals, few rounds are enough."""
    runs, methods, sizes = _grid(found)
    fewest = sum(
        min(sizes, key=lambda size: runs.where(method=name, per_round=size).mean("rounds")) == sizes[-1]
        for name in methods
    )
    slow, fast = (runs.where(method="MD_ns", per_round=size) for size in (sizes[0], sizes[-1]))
    text = (
        f"{sizes[-1]} a round takes the fewest rounds for {fewest} of {len(methods)} methods; MD_ns stops after "
        f"{fast.mean('rounds'):.0f} rounds ({fast.mean('observations'):,.0f} observations) instead of "
        f"{slow.mean('rounds'):.0f} ({slow.mean('observations'):,.0f})."
    )
    return graded(fewest, len(methods), text)


CLAIMS = (
    Claim("Section 5, Figure 1", "The method and the observations per round hardly change the final test error.",
          ("metrics-dynamic",), same_error),
    Claim("Section 5, Figure 1", "More observations per round mean fewer rounds until termination.",
          ("metrics-dynamic",), fewer_rounds),
    Claim("Section 5, Figure 1", "MD_ns needs the fewest rounds, however many observations come per round.",
          ("metrics-dynamic",), best_method),
    Claim("Section 5, Figure 1", "FW_dyn beats FW_naive, though not by much.",
          ("metrics-dynamic",), dynamic_beats_naive),
    Claim("Section 5", "The number of rankings at the end goes with the number of rounds.",
          ("metrics-dynamic",), rankings_follow_rounds),
    Claim("Section 5, Figure 2", "At the same number of observations, fewer of them per round mean lower errors.",
          ("metrics-dynamic-obs",), lower_with_fewer),
    Claim("Section 5, Figure 2", "Where observations arrive slowly, there is no need to wait for more of them.",
          ("metrics-dynamic-obs",), no_need_to_wait),
    Claim("Section 5, Figure 1", "Where observations arrive quickly, there is no need to speed up the rounds.",
          ("metrics-dynamic",), no_need_to_hurry),
)  # fmt: skip
