"""Data at the edges, which every baseline must survive."""

import rankstream as rs


def odd_data() -> dict[str, rs.ChoiceCounts]:
    offers = rs.Assortments([("a", "b", "c"), ("a", "b"), ("b", "c", "d")], ["a", "b", "c", "d", "never offered"])
    return {
        "an offer never seen": rs.ChoiceCounts(offers, [4, 1, 2, 0, 0, 3, 1, 1]),
        "an item never chosen": rs.ChoiceCounts(offers, [4, 1, 0, 2, 3, 3, 0, 1]),
        "an offer seen once": rs.ChoiceCounts(offers, [40, 10, 7, 20, 30, 0, 0, 1]),
        "one offer only": rs.ChoiceCounts(rs.Assortments([("a", "b", "c")]), [5, 0, 2]),
        "one item only": rs.ChoiceCounts(rs.Assortments([("a",)]), [5]),
        "all mass on one item": rs.ChoiceCounts(offers, [0, 9, 0, 0, 8, 7, 0, 0]),
        "many observations": rs.ChoiceCounts(offers, [10**9, 1, 0, 1, 10**9, 3, 1, 0]),
        "the same offer twice": rs.ChoiceCounts(rs.Assortments([("a", "b"), ("b", "a")]), [4, 1, 3, 3]),
    }
