"""The version number, in a module that imports nothing, so that every package can use it."""

VERSION = "0.3.0"
