"""Oracles beyond tables: local search, reinsertion and branch and bound, with their compiled loops."""
