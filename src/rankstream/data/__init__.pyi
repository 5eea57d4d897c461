"""Modules that are public by themselves; `lazy_loader` imports each when it is first used."""

from . import simulate as simulate

__all__: list[str]
