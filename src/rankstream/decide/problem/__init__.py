"""What may be offered: items' names, margins and constraints, checked and propagated."""
