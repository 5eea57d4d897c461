"""Exact oracles: dynamic programs over sets of items, with their compiled loops."""
