"""What was offered and chosen: offers, counts, counts that forget, ways to hold out, drift, readers, simulated markets."""
