"""Pages for people: blocks as data, and the templates that they are written with."""
