"""A solver's run while its problem changes: offers come and go, weights move, rounds never end."""
