"""Claim by claim: what the paper says about its study, held against our runs. Nothing here is typed in from results.

Readings: "roughly the same" is means within 15 % of each other, "strongly correlated" a rank correlation of at least
0.8, and "better" a mean paired difference of more than two standard errors.
"""

from experiments.claims import dynamic, explanations, static
from experiments.claims.verdicts import Claim, Found, Verdict

CLAIMS: tuple[Claim, ...] = (*dynamic.CLAIMS, *static.CLAIMS, *explanations.CLAIMS)

__all__ = ["CLAIMS", "Claim", "Found", "Verdict"]
