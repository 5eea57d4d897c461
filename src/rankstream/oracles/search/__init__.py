"""Oracles for problems too large for tables: local search, with its compiled loops."""
