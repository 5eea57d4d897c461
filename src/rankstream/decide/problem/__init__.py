"""The problem of a decision: names of items, margins and constraints, checked and propagated."""
