"""Packages that are not dependencies, for the few functions that need one."""

from importlib import import_module
from typing import Any


def optional(package: str, what: str) -> Any:
    """The package, or a ValueError that says how to get it.

    >>> optional("no_such_package", "A data frame")
    Traceback (most recent call last):
    ValueError: A data frame needs no_such_package, which is not installed: pip install no_such_package.
    """
    try:
        return import_module(package)
    except ImportError:
        raise ValueError(f"{what} needs {package}, which is not installed: pip install {package}.") from None
