"""What answers with probabilities: rankings, maximum entropy, logit, latent classes, Markov chain; and what can be asked."""
