"""Counts written as a file of choices."""

from pathlib import Path

import rankstream as rs


def write_transactions(path: Path, counts: rs.ChoiceCounts) -> None:
    offers = counts.assortments
    lines = ["offered,chosen,count"]
    for k, tally in enumerate(counts.tallies.tolist()):
        offer = offers.offers[offers.owner[k]]
        if tally:
            lines.append(f"{';'.join(map(str, offer))},{offers.items[offers.members[k]]},{tally:g}")
    path.write_text("\n".join(lines) + "\n")
