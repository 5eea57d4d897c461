"""Proven bounds where no table is large enough: groups of offers, parts of the items, and how costs are split."""
