"""The processes beside the server: the learner, its supervisor, and workers that answer questions."""
