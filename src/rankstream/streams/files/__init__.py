"""Streams on disk: checkpoints, packed arrays, and the validation of what is read back."""
