"""Oracles beyond tables: local search, with its compiled loops."""
