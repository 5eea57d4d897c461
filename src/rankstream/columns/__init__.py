"""Column generation: nearest and most likely models with a proof; rationality, revenue and probability ranges."""
