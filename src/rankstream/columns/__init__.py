"""Column generation: nearest and likeliest models with a proof; rationality, revenue and probability ranges."""
