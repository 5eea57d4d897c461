"""The maximum-entropy model: a distribution over all rankings, by the oracle's program with sums instead of minima."""
