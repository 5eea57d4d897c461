"""Methods as settings: a frozen class per way of fitting, with exactly the options that apply to it.

``estimate`` takes one of these, or its name: ``"max-entropy"``, ``"nearest"``, ``"primal-dual"``, ``"mnl"``,
``"latent-class"``, ``"markov-chain"``, ``"mle"``; ``"auto"`` lets ``pick`` choose among the first three. For items with
prices there are also ``"mnl-price"`` and ``"latent-class-price"``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
