"""Proven lower bounds for problems too large for a table: groups of offers, parts of the items, cost splitting."""
