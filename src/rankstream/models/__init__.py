"""What answers with probabilities: rankings, maximum entropy, logit, classes, chain; and what can be asked."""
