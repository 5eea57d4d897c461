"""Streams on disk: checkpoints, packed arrays, and their validation."""
