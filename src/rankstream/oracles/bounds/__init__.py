"""Proven lower bounds for problems too large for a table, by cuts from parts of the items."""
