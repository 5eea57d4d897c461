"""The claims of Appendix G on data that stand still (Figures 3 to 7)."""

from collections.abc import Iterable, Iterator

from experiments.claims.verdicts import (
    SAME,
    STRONG,
    Claim,
    Found,
    Verdict,
    correlated,
    graded,
    less,
    spearman,
    spread,
    yes_no,
)
from experiments.tables import Results

METHODS = ("F-W", "MD_ns", "MD_smth")
BY_SEGMENTS = ("compare_L5", "compare_L10", "compare_L100")
Trio = tuple[Results, Results, Results]


def _trios(found: Found, parts: tuple[str, ...]) -> Iterator[tuple[str, Trio]]:
    """F-W, MD_ns and MD_smth on the same markets, with a name for the combination."""
    for part in parts:
        runs = found[part]
        for norm in runs.values("norm"):
            for segments in runs.values("segments"):
                for offers in runs.values("offers"):
                    cell = runs.where(norm=norm, segments=segments, offers=offers)
                    name = f"{norm}, K = {segments}, L = {cell.setting('spread'):g}, m = {offers}"
                    first, second, third = (cell.where(method=method) for method in METHODS)
                    yield name, (first, second, third)


def same_error(found: Found) -> Verdict:
    """Test error of the three methods."""
    spreads = {name: spread(list(trio), "test_mae") for name, trio in _trios(found, BY_SEGMENTS)}
    good = sum(value <= SAME for value in spreads.values())
    worst = max(spreads, key=lambda name: spreads[name])
    text = (
        f"Within 15 % of each other in {good} of {len(spreads)} combinations; the widest is {spreads[worst]:.2f} times "
        f"({worst})."
    )
    return graded(good, len(spreads), text, f"Not in: {_list(name for name in spreads if spreads[name] > SAME)}.")


def smoothed_is_denser(found: Found) -> Verdict:
    """Where MD_smth has the lower test error it has more rounds and rankings."""
    better, paid = [], 0
    for name, (_, plain, smooth) in _trios(found, BY_SEGMENTS):
        if less(smooth, plain, "test_mae"):
            better.append(name)
            paid += less(plain, smooth, "rounds") and less(plain, smooth, "rankings")
    total = len(list(_trios(found, BY_SEGMENTS)))
    text = (
        f"MD_smth has a lower test MAE than MD_ns, by more than two standard errors, in {len(better)} of {total} "
        f"combinations ({_list(better)}), and more rounds and rankings in {paid} of these."
    )
    return graded(paid, len(better), text) if better else Verdict("does not hold", text)


def sparser_and_faster(found: Found) -> Verdict:
    """MD_ns against the two others in rankings and rounds."""
    return _wins(found, BY_SEGMENTS)


def _wins(found: Found, parts: tuple[str, ...]) -> Verdict:
    lost, total, factors = [], 0, []
    for name, (frank, plain, smooth) in _trios(found, parts):
        total += 1
        factors.append(min(frank.mean("rounds"), smooth.mean("rounds")) / plain.mean("rounds"))
        both = [less(plain, rival, metric) for rival in (frank, smooth) for metric in ("rounds", "rankings")]
        if not all(both):
            lost.append(name)
    text = (
        f"MD_ns has fewer rounds and fewer rankings than both others, by more than two standard errors, in "
        f"{total - len(lost)} of {total} combinations; the next best takes {min(factors):.2f} to {max(factors):.2f} "
        "times its rounds."
    )
    return graded(total - len(lost), total, text, f"Not in: {_list(lost)}.")


def others_are_alike(found: Found) -> Verdict:
    """F-W and MD_smth in rankings and rounds."""
    spreads = {
        name: max(spread([frank, smooth], "rounds"), spread([frank, smooth], "rankings"))
        for name, (frank, _, smooth) in _trios(found, BY_SEGMENTS)
    }
    good = sum(value <= SAME for value in spreads.values())
    by_norm: dict[str, list[bool]] = {}
    for name, value in spreads.items():
        by_norm.setdefault(name.split(",")[0], []).append(value <= SAME)
    shown = ", ".join(f"{sum(found)} of {len(found)} under {norm}" for norm, found in by_norm.items())
    text = (
        f"Rounds and rankings of F-W and MD_smth are within 15 % of each other in {good} of {len(spreads)} "
        f"combinations; the widest is {max(spreads.values()):.2f} times."
    )
    return graded(good, len(spreads), text, f"By norm: {shown}.")


def same_error_for_any_offers(found: Found) -> Verdict:
    """Test error of the three methods for every number of offers."""
    spreads = {name: spread(list(trio), "test_mae") for name, trio in _trios(found, ("compare_m",))}
    good = sum(value <= SAME for value in spreads.values())
    widest = max(spreads.values())
    text = f"Within 15 % of each other in {good} of {len(spreads)} combinations, at most {widest:.2f} times."
    return graded(good, len(spreads), text)


def small_subproblems(found: Found) -> Verdict:
    """The oracle's time per call."""
    runs = found["metrics-static-fixedthread"]
    call, share = runs.mean("oracle_ms"), runs.mean("oracle_seconds") / runs.mean("seconds")
    text = f"A call takes {1e3 * call:.1f} microseconds on average, {100 * share:.0f} % of a round's time."
    return yes_no(call < 100.0, text)


def whatever_the_truth(found: Found) -> Verdict:
    """Whether MD_ns has the fewest rounds on average for all K and L, norm by norm."""
    wins: dict[str, int] = {}
    total: dict[str, int] = {}
    for name, trio in _trios(found, BY_SEGMENTS):
        norm = name.split(",")[0]
        frank, plain, smooth = (cell.mean("rounds") for cell in trio)
        total[norm] = total.get(norm, 0) + 1
        wins[norm] = wins.get(norm, 0) + (plain < min(frank, smooth))
    text = "MD_ns has the lowest mean of rounds in " + ", ".join(
        f"{wins[norm]} of {total[norm]} combinations of K and L under {norm}" for norm in total
    )
    return graded(sum(wins.values()), sum(total.values()), f"{text}.")


def as_with_arriving_data(found: Found) -> Verdict:
    """The winner with standing and with arriving data."""
    still = found["compare_L5"].where(segments=5, norm="l2")
    moving = found["metrics-dynamic"].where(method=("MD_ns", "MD_smth", "FW_dyn"))
    winners = []
    for runs in (still, moving):
        means = {name: runs.where(method=name).mean("rounds") for name in runs.values("method")}
        winners.append(min(means, key=lambda name: means[name]))
    text = f"Fewest rounds with standing data (l2, K = L = 5): {winners[0]}; with arriving data: {winners[1]}."
    return yes_no(winners[0] == winners[1] == "MD_ns", text)


def more_offers(found: Found) -> Verdict:
    """Test error falls, rankings and rounds grow with the number of offers."""
    runs = found["compare_m"]
    good, total = 0, 0
    for norm in runs.values("norm"):
        for method in runs.values("method"):
            cells = [runs.where(norm=norm, method=method, offers=offers) for offers in runs.values("offers")]
            for metric, sign in (("test_mae", -1), ("rankings", 1), ("rounds", 1)):
                means = [sign * cell.mean(metric) for cell in cells]
                good, total = good + (means == sorted(means)), total + 1
    return graded(good, total, f"True of {good} of {total} combinations of norm, method and metric.")


def wins_for_any_offers(found: Found) -> Verdict:
    """MD_ns against the two others for every number of offers."""
    return _wins(found, ("compare_m",))


def seconds_follow_rounds(found: Found) -> Verdict:
    """Rank correlation of seconds and rounds, over all runs and within a norm."""
    runs = found["metrics-static-fixedthread"]
    whole = spearman(runs.column("seconds"), runs.column("rounds"))
    within = {
        norm: spearman(runs.where(norm=norm).column("seconds"), runs.where(norm=norm).column("rounds"))
        for norm in runs.values("norm")
    }
    parts = ", ".join(f"{value:.3f} within {norm}" for norm, value in within.items())
    text = f"Spearman's correlation over {len(runs)} timed runs is {whole:.3f}; {parts}."
    if whole < STRONG <= min(within.values()):
        why = "Within a norm: where a call of the oracle takes microseconds, the norm's own arithmetic shows."
        return Verdict("holds in part", f"{text} {why}")
    return yes_no(whole >= STRONG, text)


def fastest(found: Found) -> Verdict:
    """MD_ns against the two others in seconds."""
    runs = found["metrics-static-fixedthread"]
    wins, parts = 0, []
    for norm in runs.values("norm"):
        means = {name: runs.where(norm=norm, method=name).mean("seconds") for name in METHODS}
        wins += means["MD_ns"] == min(means.values())
        parts.append(f"{norm} " + ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in means.items()))
    return graded(wins, len(parts), "Mean time of a fit: " + "; ".join(parts) + ".")


def oracle_time_is_alike(found: Found) -> Verdict:
    """The oracle's time per call by method and norm."""
    runs = found["metrics-static-fixedthread"]
    means = {
        f"{name}, {norm}": runs.where(norm=norm, method=name).mean("oracle_ms")
        for norm in runs.values("norm")
        for name in METHODS
    }
    low, high = min(means.values()), max(means.values())
    text = (
        f"{1e3 * low:.1f} to {1e3 * high:.1f} microseconds a call; slowest {max(means, key=lambda name: means[name])}. "
        "Our oracle passes over all unions of offers whatever the costs are, so differences are the machine's."
    )
    return yes_no(high / low <= 1.5, text)


def rankings_and_rounds(found: Found) -> Verdict:
    """The rank correlation that the paper gives as 0.922."""
    runs = found["compare_m"]
    base = runs.where(offers=20)
    only = spearman(base.column("rankings"), base.column("rounds"))
    return correlated(runs, "rankings", "rounds", f" ({only:.3f} over the runs with m = 20; the paper: 0.922)")


def at_most_one_a_round(found: Found) -> Verdict:
    """No run has more rankings than rounds."""
    runs = [row for part in BY_SEGMENTS for row in found[part].rows]
    over = sum(row.results["rankings"] > row.results["rounds"] for row in runs)
    share = sum(row.results["rankings"] for row in runs) / sum(row.results["rounds"] for row in runs)
    return yes_no(
        over == 0, f"{over} of {len(runs)} runs have more rankings than rounds; {share:.2f} a round on average."
    )


def _list(names: Iterable[str]) -> str:
    entries = list(names)
    shown = "; ".join(entries[:6])
    return f"{shown}; and {len(entries) - 6} more" if len(entries) > 6 else shown or "none"


TIMED = ("metrics-static-fixedthread",)
CLAIMS = (
    Claim("Appendix G, Figures 3-5", "The three methods have roughly the same test error, whatever the norm.",
          BY_SEGMENTS, same_error),
    Claim("Appendix G, Figures 3-5", "MD_smth, where it is slightly better, takes more rounds and is denser.",
          BY_SEGMENTS, smoothed_is_denser),
    Claim("Appendix G, Figures 3-5", "MD_ns finds a clearly sparser model in clearly fewer rounds.",
          BY_SEGMENTS, sparser_and_faster),
    Claim("Appendix G, Figures 3-5", "F-W and MD_smth are similar in rankings and rounds.",
          BY_SEGMENTS, others_are_alike),
    Claim("Appendix G, Figures 3-5", "MD_ns is superior for every norm and all combinations of K and L.",
          BY_SEGMENTS, whatever_the_truth),
    Claim("Appendix G", "The static findings agree with those on arriving data.",
          ("compare_L5", "metrics-dynamic"), as_with_arriving_data),
    Claim("Appendix G, Figure 6", "With more offers the test error falls, and rankings and rounds grow.",
          ("compare_m",), more_offers),
    Claim("Appendix G, Figure 6", "MD_ns outperforms the others for every number of offers.",
          ("compare_m",), wins_for_any_offers),
    Claim("Appendix G, Figure 6", "For every number of offers the methods have the same test error.",
          ("compare_m",), same_error_for_any_offers),
    Claim("Appendix G, Figure 7", "Subproblem times are quite small.", TIMED, small_subproblems),
    Claim("Appendix G, Figure 7", "Solution time and rounds are strongly correlated.", TIMED, seconds_follow_rounds),
    Claim("Appendix G, Figure 7", "MD_ns has the shortest solution time.", TIMED, fastest),
    Claim("Appendix G, Figure 7", "The subproblem's time depends on neither method nor norm.",
          TIMED, oracle_time_is_alike),
    Claim("Appendix G, remarks", "Rankings and rounds have a Spearman correlation of about 0.922 at K = L = 5.",
          ("compare_m",), rankings_and_rounds),
    Claim("Appendix G, remarks", "A round adds at most one ranking, so rounds bound the size of the model.",
          BY_SEGMENTS, at_most_one_a_round),
)  # fmt: skip
