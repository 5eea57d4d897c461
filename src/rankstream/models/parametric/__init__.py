"""Models with a fixed number of parameters: logit, latent classes, Markov chain."""
