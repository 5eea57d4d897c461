"""The loop of the paper's Section 4.1: price the mismatch, answer with the cheapest ranking, average."""
