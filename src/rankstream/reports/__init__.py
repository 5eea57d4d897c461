"""Reports on a model and its choices: the blocks that pages are made of, their sections, and `rs.report`."""
