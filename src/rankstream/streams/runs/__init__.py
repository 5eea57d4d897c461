"""Runs of a solver while its problem changes: offers come and go, weights change, rounds never end."""
