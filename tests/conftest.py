"""Shared test set-up: reproducible hypothesis runs."""

from hypothesis import settings

settings.register_profile("rankstream", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("rankstream")
