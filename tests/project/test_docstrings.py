"""Whoever calls a function with many parameters can read what each is: in the docstring, under its own name."""

import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from inspect import Parameter, cleandoc, getdoc, isclass, isfunction, signature
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import pytest

import rankstream as rs

MANY = 4
SECTION = re.compile(r"^(Parameters|Attributes)\n-{10}\n((?:.+\n?)+)", re.MULTILINE)
SHOWN = re.compile(r"^::: (\S+)$(\n    options:\n      members: false)?", re.MULTILINE)
CODE = re.compile(r"(`+)(?:.|\n)*?\1|^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
TAG = re.compile(r"<\w+")
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : \S.*\n    \S", re.MULTILINE)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function, class and method that users can reach, by the name that they use."""
    spaces = {f"rs.{name}": getattr(rs, name) for name in rs.__all__ if isinstance(getattr(rs, name), ModuleType)}
    for space, owner in {"rs": rs, **spaces}.items():
        for name in owner.__all__:
            thing = getattr(owner, name)
            if isclass(thing):
                yield from ((f"{space}.{name}.{part}", method) for part, method in methods(thing))
            described = isclass(thing) and not getattr(thing, "_is_protocol", False)
            if isfunction(thing) or (described and not issubclass(thing, Exception)):
                yield f"{space}.{name}", thing


def methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, member in vars(owner).items():
        method = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isfunction(method) and not name.startswith("_"):
            yield name, method


def parameters(thing: Callable[..., Any]) -> list[str]:
    variable = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    every = signature(thing).parameters.values()
    return [one.name for one in every if one.name not in ("self", "cls") and one.kind not in variable]


def listed(text: str) -> tuple[str, list[str]] | None:
    """The name of the section and the names in it; None without one."""
    section = SECTION.search(f"{text}\n")
    if section is None:
        return None
    return section[1], [name for entry in ENTRY.findall(section[2]) for name in entry.split(", ")]


def shown() -> Iterator[tuple[str, str]]:
    """Every docstring on the reference pages, by the name of what it describes."""
    for page in (Path(__file__).parents[2] / "docs" / "reference").glob("*.md"):
        for name, alone in SHOWN.findall(page.read_text(encoding="utf-8")):
            thing = resolve_name(name)
            members = {} if alone or not isclass(thing) else vars(thing)
            for part, member in {"": thing, **members}.items():
                if not part.startswith("_") and member.__doc__ != type(member).__doc__:  # its own docstring
                    yield f"{name}.{part}".removesuffix("."), getdoc(member) or ""


PUBLIC = dict(public())
LISTING = sorted(name for name, thing in PUBLIC.items() if listed(getdoc(thing) or ""))


def takes_many(thing: Callable[..., Any]) -> bool:
    """Whether its parameters should be listed: not where it refers to something that takes the same."""
    text = getdoc(thing) or ""
    refers = "takes the same arguments" in text or "The parameters are those of" in text
    return len(parameters(thing)) > MANY and not refers


@pytest.mark.parametrize("name", sorted(name for name, thing in PUBLIC.items() if takes_many(thing)))
def test_many_parameters_are_listed(name: str) -> None:
    assert name in LISTING, f"{name} takes {', '.join(parameters(PUBLIC[name]))}: list them under 'Parameters'."


@pytest.mark.parametrize("name", LISTING)
def test_lists_are_complete_and_have_no_other_names(name: str) -> None:
    found = listed(getdoc(PUBLIC[name]) or "")
    assert found is not None
    section, names = found
    if section == "Attributes":  # a class lists what it adds to its bases
        bases = [listed(cleandoc(base.__doc__ or "")) for base in getattr(PUBLIC[name], "__mro__", ())[1:]]
        names += [more for base in bases if base is not None for more in base[1]]
    assert section == "Parameters" or is_dataclass(PUBLIC[name]), "only what is read, not made, has attributes"
    assert sorted(names) == sorted(parameters(PUBLIC[name]))


def test_public_names_have_docstrings() -> None:
    assert len(PUBLIC) > 100
    assert [name for name, thing in PUBLIC.items() if not getdoc(thing)] == []


def test_lists_are_read() -> None:
    text = "Waits.\n\nParameters\n----------\nlong, wide : float\n    How long.\nseed : int\n    Seed.\n\n>>> 1\n1\n"
    assert listed(text) == ("Parameters", ["long", "wide", "seed"])
    assert listed("Waits.\n\nParameters are long : float\n    and more.") is None


def faults(text: str) -> list[str]:
    """What the site would not show as it is meant: an example without its heading, a < that begins a tag."""
    before, example, _ = f"\n{text}".partition("\n>>> ")
    return [
        *(["no Examples"] if example and "\nExamples\n--------" not in before else []),
        *TAG.findall(CODE.sub("", text)),
    ]


def test_the_site_shows_docstrings_as_they_are_meant() -> None:
    texts = dict(shown())
    assert len(texts) > 300
    assert {name: found for name, text in texts.items() if (found := faults(text))} == {}


def test_faults_are_found() -> None:
    assert faults("Adds.\n\nExamples\n--------\n>>> 1 <x\n2\n\nIf ``<x, y>`` < 1.") == []
    assert faults("Adds <x, y>.\n\n>>> 1\n1") == ["no Examples", "<x"]
