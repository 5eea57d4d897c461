"""What was offered and chosen: offers, counts, forgetting, holding out, drift, readers, simulated markets."""
