"""Where a stream's records come from: growing files, rotation, parsing and the rules for records."""
