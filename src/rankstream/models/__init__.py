"""Choice models: rankings, maximum entropy, logit, latent classes, Markov chain; and their answers."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
