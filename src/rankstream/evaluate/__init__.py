"""Held-out comparison of models, and customer types that came and went."""

from rankstream.evaluate.compare import MODELS, compare, score

__all__ = ["MODELS", "compare", "score"]
