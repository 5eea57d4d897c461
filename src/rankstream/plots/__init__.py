"""Pictures, with matplotlib; every function draws on given axes and returns them."""
