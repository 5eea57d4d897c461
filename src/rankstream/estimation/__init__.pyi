"""Modules that are public by themselves; `lazy_loader` imports each when it is first used."""

from . import methods as methods

__all__: list[str]
