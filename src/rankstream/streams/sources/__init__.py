"""Sources of records: growing files, rotation, parsing and checks."""
