"""Held-out comparison of models, and customer types that came and went."""
