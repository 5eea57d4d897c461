"""Questions beyond the paper's own, one section of the report each: tables and what follows from them."""

from collections.abc import Callable

import numpy as np

from experiments.claims.verdicts import Found, difference
from experiments.tables import Results, grid, markdown, plus_minus, with_error
from rankstream import certificate
from rankstream.data import simulate

OWN = -1.0


def _name(cell: Results) -> str:
    power, step, smoothing = (cell.setting(name) for name in ("power", "step", "smoothing"))
    changes = [] if power == OWN else ["equal weights" if power == 0.0 else f"weights t^{power:g}"]
    changes += [f"step x {step:g}"] if step != 1.0 else []
    changes += [f"smoothing x {smoothing:g}"] if smoothing != 1.0 else []
    return f"{cell.setting('method')}, {', '.join(changes)}" if changes else str(cell.setting("method"))


def why(found: Found) -> str:
    """Which change carries the effect."""
    runs = found["why"]
    names = list(dict.fromkeys(_name(cell) for cell in runs.cells()))
    norms = runs.values("norm")
    cells = {(_name(cell), cell.setting("norm")): cell for cell in runs.cells()}
    lines = []
    for name in sorted(names):
        found_cells = [cells.get((name, norm)) for norm in norms]
        lines.append(
            [
                name,
                *(f"{cell.mean('rounds'):.0f}" if cell else "" for cell in found_cells),
                *(f"{cell.mean('rankings'):.0f}" if cell else "" for cell in found_cells),
                *(f"{cell.mean('test_mae'):.4f}" if cell else "" for cell in found_cells),
            ]
        )
    head = ["method, change", *(f"{what}, {norm}" for what in ("rounds", "rankings", "test MAE") for norm in norms)]
    return f"""{markdown(head, lines)}

{_same_runs(runs)}

The algebra. Mirror descent on the plain l2 norm with step g and weights w_t plays y_(t+1) = P(y_t + g w_t (x_t - p)),
P the projection on the unit ball. As long as no projection bites, y_(t+1) = g W_t (x_bar_t - p) with
W_t = w_1 + ... + w_t: the *direction* of the residual of the averages, which is what follow-the-leader on the smoothed
or squared norm answers too (its length differs, and an oracle does not see lengths). Hence MD_ns is Frank-Wolfe with
equal weights, its step size cannot matter until the boundary, and the box of l1 gives the same. For l-infinity the
duals are exp(±g W_t (x_bar_t - p)) up to a constant, which for small steps is linear in the residual again. MD_sq has
steps w_t / W_t, so y_(t+1) = x_bar_t - p exactly: it is FW_dyn on the square. What sets MD_ns apart is that it counts
all rounds the same where the others count round t for t."""


def _same_runs(runs: Results) -> str:
    """Which settings gave the same rounds and rankings on every instance."""
    groups: dict[tuple[bytes, bytes], list[str]] = {}
    for cell in runs.cells():
        key = (cell.column("rounds").tobytes(), cell.column("rankings").tobytes())
        groups.setdefault(key, []).append(f"{_name(cell)} ({cell.setting('norm')})")
    same = [names for names in groups.values() if len(names) > 1]
    lines = [f"- {'; '.join(sorted(names))}" for names in sorted(same, key=lambda names: (-len(names), names))]
    return "Settings with the same rounds and rankings on every single instance:\n\n" + "\n".join(lines)


def ties(found: Found) -> str:
    """Test error by tie rule."""
    runs = found["ties"]
    table = grid(runs, ("norm", "method"), "ties", with_error("test_mae"), "ties:")
    base = runs.where(norm="l2", method="MD_ns")
    parts = []
    for rule in ("first", "last"):
        mean, error = difference(base.where(ties=rule), base.where(ties="random"), "test_mae")
        parts.append(f"{plus_minus(f'{mean:+.4f}', error)} for {rule!r}")
    rounds = ", ".join(f"{rule} {base.where(ties=rule).mean('rounds'):.0f}" for rule in base.values("ties"))
    return f"""The data leave part of a ranking open; the rule fills it in. Test MAE (mean ± standard error):

{table}

Paired difference from "random" with MD_ns under l2: {", ".join(parts)}. Rounds hardly differ ({rounds}): the fit and
its certificate do not see the rule, predictions on unseen offers do. Our figures use "random", seeded by the instance;
the paper does not say what Gurobi returned."""


def truth(found: Found) -> str:
    """Errors against the averaged data, the latest data and the truth."""
    runs = found["metrics-dynamic"]
    header = ["method", "a round", "rounds", "observations", "x̄ - p̄ (stops)", "x̄ - p_t", "x̄ - p", "p_t - p"]
    lines = []
    ratios: dict[str, list[float]] = {}
    for method in runs.values("method"):
        for size in runs.values("per_round"):
            cell = runs.where(method=method, per_round=size)
            errors = [cell.mean(name) for name in ("mae", "latest_mae", "truth_mae", "data_mae")]
            ratios.setdefault(method, []).append(errors[2] / errors[0])
            counts = [f"{cell.mean('rounds'):.0f}", f"{cell.mean('observations'):,.0f}"]
            lines.append([method, str(size), *counts, *(f"{value:.5f}" for value in errors)])
    means = {method: float(np.mean(values)) for method, values in ratios.items()}
    most, least = max(means, key=lambda name: means[name]), min(means, key=lambda name: means[name])
    naive = runs.where(method="FW_naive")
    readings = [
        f"{naive.where(per_round=size).mean('rounds'):.0f} / {naive.where(per_round=size).mean('rounds_by_latest'):.0f}"
        for size in naive.values("per_round")
    ]
    sizes = ", ".join(map(str, naive.values("per_round")))
    return f"""Mean absolute errors at the end, which is the stopping rule or, in some runs, the limit of rounds (p̄ the
weighted mean of the data, p_t the latest, p the truth):

{markdown(header, lines)}

At the stop the distance to the truth is {means[most]:.1f} times that of the stopping rule for {
        most
    } (most flattered) and
{means[least]:.1f} times for {
        least
    } (least), on average over the numbers of observations. The rule compares two averages over
the same rounds, and equal weights keep the oldest, noisiest data in both; data and truth are still {
        runs.mean("data_mae"):.4f} apart on average.

FW_naive aims at p_t, so both readings of its rule: rounds until x̄ is close to p̄ / until x̄ is close to p_t, at {sizes} a
round: {", ".join(readings)} (runs that never got there count as the limit)."""


def guarantees(found: Found) -> str:
    """A-priori bounds against certified gaps, at the stop."""
    runs = found["compare_L5"].where(segments=5)
    offers = simulate.market(0).assortments
    learner = {"MD_ns": "mirror-descent", "MD_smth": "strongly-convex-mirror-descent", "F-W": "follow-the-leader"}
    lines = []
    for norm in runs.values("norm"):
        for method in runs.values("method"):
            cell = runs.where(norm=norm, method=method)
            proven, promised = cell.mean("gap"), cell.mean("guarantee")
            try:
                needed = f"{certificate.rounds_needed(learner[method], norm, offers, proven):,}"
            except ValueError:
                needed = "none"
            ratio = "" if np.isinf(promised) else f"{promised / proven:.1f}"
            numbers = [f"{cell.mean('rounds'):.0f}", f"{proven:.4f}", f"{promised:.4f}", ratio, needed]
            lines.append([norm, method, *numbers])
    head = ["norm", "method", "rounds", "certified gap", "guaranteed gap", "ratio", "rounds to guarantee that gap"]
    return f"""At the stop (K = L = 5, m = 20), both of the plain norm:

{markdown(head, lines)}

The last column tunes step and smoothing to the rounds. For MD_smth under l-infinity no bound holds (the entropy's
gradient is not bounded)."""


def resolving(found: Found) -> str:
    """One round per update against solving again."""
    runs = found["resolving"]
    lines = []
    for size in runs.values("per_round"):
        for way in ("one round", "again", "again from the last dual"):
            cell = runs.where(per_round=size, way=way)
            errors = [f"{cell.mean(name):.4f}" for name in ("mean_truth_mae", "truth_mae", "test_mae")]
            lines.append([str(size), way, f"{cell.mean('calls'):,.0f}", *errors])
    head = [
        "a round",
        "at every update",
        "oracle calls",
        "mean x̄ - p over updates",
        "x̄ - p at the end",
        "test MAE at the end",
    ]
    calls = {way: runs.where(way=way).mean("calls") for way in runs.values("way")}
    updates = runs.where(way="one round").mean("calls")
    return f"""{updates:.0f} updates; solving again means to MAE 0.001 against p_t or 10,000 rounds:

{markdown(head, lines)}

Solving again costs {calls["again"] / updates:,.0f} times the oracle calls of one round per update
({calls["again from the last dual"] / updates:,.0f} times from the last dual). After so few updates the single rounds
have not caught up yet, so it does buy accuracy; with our oracle a call is microseconds, with an integer program it is
not (below)."""


QUESTIONS: tuple[tuple[str, tuple[str, ...], Callable[[Found], str]], ...] = (
    ("Why the best method wins", ("why",), why),
    ("What the tie rule does to unseen offers", ("ties",), ties),
    ("Distance to the truth: which stopping rule flatters", ("metrics-dynamic",), truth),
    ("Guarantees in advance against what happens", ("compare_L5",), guarantees),
    ("Solving again at every update", ("resolving",), resolving),
)
