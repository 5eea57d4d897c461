"""What the service keeps on disk: the log, what was learned, tokens, and their maintenance."""
