"""The command line: a file for each command, over the library."""

from rankstream.cli.app import main

__all__ = ["main"]
