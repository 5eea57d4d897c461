"""What answers with probabilities: rankings, maximum entropy, logit, classes, chain; and what can be asked."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
