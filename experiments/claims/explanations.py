"""The explanations that the paper offers for its findings, and what it says of tuning."""

from math import inf

from experiments.claims.verdicts import SAME, Claim, Found, Verdict, graded, spread, yes_no
from experiments.tables import Results
from rankstream import certificate
from rankstream.data import simulate

OWN = -1.0
HORIZON = 10_000


def _plain(runs: Results) -> Results:
    """Methods as in the paper, or with other averaging weights only."""
    return runs.where(step=1.0, smoothing=1.0)


def weights_or_smoothness(found: Found) -> Verdict:
    """Change one thing at a time between F-W and MD_ns: the averaging weights, or the distance and the learner."""
    runs = _plain(found["why"])
    parts, by_weights = [], 0
    norms = runs.values("norm")
    for norm in norms:
        cells = {
            name: runs.where(norm=norm, method=method, power=power).mean("rounds")
            for name, method, power in (
                ("MD_ns", "MD_ns", OWN),
                ("MD_ns with weights t", "MD_ns", 1.0),
                ("F-W", "F-W", OWN),
                ("F-W with equal weights", "F-W", 0.0),
            )
        }
        between = cells["F-W"] - cells["MD_ns"]
        carried = [cells["MD_ns with weights t"] - cells["MD_ns"], cells["F-W"] - cells["F-W with equal weights"]]
        by_weights += between > 0.0 and min(carried) / between > 0.5
        parts.append(f"{norm}: " + ", ".join(f"{name} {value:.0f}" for name, value in cells.items()))
    text = (
        f"Mean rounds, {'; '.join(parts)}. The averaging weights alone make more than half of the difference, both "
        f"ways, under {by_weights} of {len(norms)} norms."
    )
    return yes_no(by_weights == 0, text)


METHODS = (
    ("MD_ns", "mirror-descent"),
    ("MD_smth", "strongly-convex-mirror-descent"),
    ("F-W", "follow-the-leader"),
)
NORMS = ("l1", "l2", "linf")


def _guarantees(rounds: int) -> dict[str, dict[str, float]]:
    """The guarantees of the plain norm after ``rounds`` rounds, by norm and method, everything tuned to the rounds."""
    offers = simulate.market(0).assortments
    return {
        norm: {name: certificate.guaranteed_gap(learner, norm, offers, rounds) for name, learner in METHODS}
        for norm in NORMS
    }


def constants(_: Found) -> Verdict:
    """The guarantees for the plain norm after 10,000 rounds, per norm."""
    found = _guarantees(HORIZON)
    best = sum(bounds["MD_ns"] == min(bounds.values()) for bounds in found.values())
    parts = [f"{norm}: " + ", ".join(f"{name} {value:.3f}" for name, value in found[norm].items()) for norm in NORMS]
    text = f"Guaranteed gap of the norm after {HORIZON:,} rounds (m = 20), {'; '.join(parts)}."
    return graded(best, len(found), text)


def same_rate(_: Found) -> Verdict:
    """How the guarantees of the plain norm fall when the rounds are quadrupled, everything tuned to them."""
    early, late = _guarantees(HORIZON), _guarantees(4 * HORIZON)
    cases = [(name, norm) for norm in NORMS for name, _ in METHODS]
    ratios = {f"{name}, {norm}": early[norm][name] / late[norm][name] for name, norm in cases if late[norm][name] < inf}
    without = [f"{name} under {norm}" for name, norm in cases if late[norm][name] == inf]
    text = f"From {HORIZON:,} to {4 * HORIZON:,} rounds they fall to " + ", ".join(
        f"1/{ratio:.2f} ({case})" for case, ratio in ratios.items()
    )
    text = f"{text}; 1/2 is the square root's."
    same = all(abs(ratio - 2.0) < 0.05 for ratio in ratios.values())
    if same and without:
        missing = f"Not for {', '.join(without)}, where no guarantee is finite: the entropy's gradient is not bounded."
        return Verdict("holds in part", f"{text} {missing}")
    return yes_no(same, text)


def one_method(found: Found) -> Verdict:
    """FW_dyn and FW_naive on standing data, run by run."""
    runs = found["why"]
    same, total, off = 0, 0, 0.0
    for norm in runs.values("norm"):
        first, second = (runs.where(norm=norm, method=name).column("rounds") for name in ("FW_dyn", "FW_naive"))
        same, total = same + int((first == second).sum()), total + first.size
        off = max(off, float(abs(first - second).max()))
    text = (
        f"{same} of {total} pairs of runs take the same number of rounds; the others differ by up to {off:.0f}: the "
        "mean of equal frequencies is equal only up to rounding, and a kink or a tie turns that into another vertex."
    )
    return yes_no(True, text) if same == total else Verdict("holds in part", f"{text} In exact arithmetic.")


def textbook_steps(found: Found) -> Verdict:
    """Rounds of MD_ns with the step multiplied."""
    runs = found["why"].where(method="MD_ns", power=OWN)
    parts, worse = [], 1.0
    for norm in runs.values("norm"):
        base = runs.where(norm=norm, step=1.0).mean("rounds")
        factors = {step: runs.where(norm=norm, step=step).mean("rounds") / base for step in runs.values("step")}
        worse = max(worse, 1.0 / min(factors.values()))
        parts.append(f"{norm}: " + ", ".join(f"{step:g} x {factor:.2f}" for step, factor in factors.items()))
    text = (
        f"Rounds relative to the textbook step, by the factor on the step, {'; '.join(parts)}. Smaller steps change "
        "nothing: until the dual meets its boundary only its direction counts."
    )
    return yes_no(worse <= SAME, text)


def little_to_tune(found: Found) -> Verdict:
    """Rounds of the smoothed methods with the smoothing multiplied."""
    runs = found["why"].where(method=("F-W", "MD_smth"), power=OWN)
    parts, insensitive, total = [], 0, 0
    for norm in runs.values("norm"):
        for method in runs.values("method"):
            cells = [runs.where(norm=norm, method=method, smoothing=factor) for factor in runs.values("smoothing")]
            insensitive, total = insensitive + (spread(cells, "rounds") <= 1.5), total + 1
            shown = ", ".join(f"{cell.mean('rounds'):.0f}" for cell in cells)
            parts.append(f"{method} under {norm} {shown}")
    factors = ", ".join(f"{value:g}" for value in runs.values("smoothing"))
    text = f"Mean rounds with {factors} times the prescribed smoothing: {'; '.join(parts)}."
    return graded(insensitive, total, text, "MD_smth needs enough smoothing; F-W hardly notices.")


CLAIMS = (
    Claim("Section 5", "Explanation: MD_ns wins because it treats the non-smooth problem directly.",
          ("why",), weights_or_smoothness),
    Claim("Section 5", "All methods have the same asymptotic guarantee, one over the square root of the rounds.",
          ("why",), same_rate),
    Claim("Section 5", "Explanation: MD_ns has the better constants in its guarantee.", ("why",), constants),
    Claim("Appendix G", "With standing data FW_naive and FW_dyn are the same method.", ("why",), one_method),
    Claim("Appendix G, remarks", "The textbook constant step sizes work quite well.", ("why",), textbook_steps),
    Claim("Appendix G, remarks", "The smoothed methods need essentially no tuning.", ("why",), little_to_tune),
)  # fmt: skip
