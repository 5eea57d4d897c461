"""Internals that all packages share: types, compilation, argument checks, atomic file writes, deadlines."""
