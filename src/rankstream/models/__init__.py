"""Choice models: rankings, maximum entropy, logit, latent classes, Markov chain; and their answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
