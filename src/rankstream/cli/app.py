"""The command line as a whole; bad input is one sentence and exit code 2.

A command is loaded when it is the one that was asked for, and what takes time is imported within it, so that help and
completion come at once.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rankstream._core.terminal import visible
from rankstream._core.version import VERSION
from rankstream.cli.options import OPTIONS_HEADING, shell_words

COMMANDS = (
    *("demo", "open", "fit", "predict", "show", "plot", "decide", "report"),
    *("stream", "drift", "compare", "reproduce", "serve"),
)
"""Each is a file of this folder with a function of that name, or a group of commands."""
PANELS = {
    "Model": ("method", "tolerance", "no_errors"),
    "Constraints": ("at_most", "at_least", "must", "never", "requires", "excludes", "capacity", "ladder", "changes"),
    "Reading the file": (
        *("price_columns", "price_levels", "no_choice", "outside_share", "format", "columns", "contents", "separator"),
        *("decimal", "dates", "encoding", "sheet", "partitions", "on_error", "rejects"),
    ),
    "Receipts": ("stock", "visits", "price_list", "category", "per_receipt", "conflicts", "stock_format", "timezone"),
    "Time": ("since", "half_life", "window", "budget", "timeout"),
    "Several markets": ("by", "market", "pool", "jobs"),
    "Output": ("out", "title", "plot", "as_json", "seed", "help"),
}
"""The groups of options that help shows, each with the most used option first; others come before all of these."""
INTERRUPTED_CODE = 130  # what typer makes of Ctrl-C


class ShellCommand(TyperCommand):
    """A command whose help shows options in groups; help that does not fit beside an option is in the docstring."""

    def __init__(self, *words: Any, **more: Any) -> None:
        text, _, listed = (more["help"] or "").partition(OPTIONS_HEADING)
        about = dict(line.split(": ", 1) for line in listed.replace("\n    ", " ").splitlines())
        for one in more["params"]:
            one.help = one.help or about.get(one.name)
        super().__init__(*words, **more | {"help": text})

    def get_params(self, ctx: Any) -> Any:
        """The options and arguments."""
        return _sorted_into_panels(_plain_flags(super().get_params(ctx)))


class ShellGroup(TyperGroup):
    """All commands, and the flags beside them."""

    def get_params(self, ctx: Any) -> Any:
        """The options and arguments."""
        return _plain_flags(super().get_params(ctx))


def _plain_flags(parameters: list[Any]) -> list[Any]:
    """Show flags without a type: they take no value."""
    for one in parameters:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""
    return parameters


def _sorted_into_panels(parameters: list[Any]) -> list[Any]:
    """Sort options, and leave arguments first and in their order."""
    places = {name: (panel, place) for panel, names in PANELS.items() for place, name in enumerate(names)}
    arguments = [one for one in parameters if one.param_type_name != "option"]
    options = [one for one in parameters if one.param_type_name == "option"]
    for one in options:
        if one.rich_help_panel is None:
            one.rich_help_panel = places.get(one.name, (None,))[0]
    titles = [None, *PANELS]
    options.sort(key=lambda one: (titles.index(one.rich_help_panel), places.get(one.name, ("", len(places)))[1]))
    return [*arguments, *options]


def make_app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(cls=ShellGroup, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(rankstream)
    for name in commands:
        found = getattr(import_module(f"rankstream.cli.{name}"), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(cls=ShellCommand)(found)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankstream {VERSION}")
        raise typer.Exit


def rankstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn what customers choose from what you offer.

    Start with 'demo'. With your own data, 'open' shows it as a page in the
    browser, and 'fit' writes a model file. 'predict', 'show' and 'plot'
    answer questions from it, 'decide' finds the offer that earns most, and
    'report' puts everything into one file. 'stream' keeps a model up to date
    from a growing file, and 'serve' over HTTP. 'drift' shows what changed,
    and 'compare' which kind of model fits best.

    Most commands take --json, and --seed where results are random.
    Exit codes: 0 success, 1 interrupted or failed, 2 bad input.
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; what is wrong with the input goes to standard error."""
    given = sys.argv[1:] if words is None else list(words)
    try:
        make_app(given[:1] if given and given[0] in COMMANDS else COMMANDS)(given)
    except (ValueError, OSError) as error:
        _leave(str(error), 2)
    except MemoryError:
        _leave("not enough memory: use fewer items, offers or choices.", 1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED_CODE:
            _leave("interrupted.", 1)
        raise
    except Exception as error:
        if type(error).__module__ != "sqlite3":  # which only services need, and is not imported here
            raise
        _leave(f"the service's database failed ({error}): check the disk, or restore a backup.", 1)


def _leave(sentence: str, code: int) -> None:
    typer.echo(f"rankstream: {visible(shell_words(sentence), keep='')}", err=True)
    sys.exit(code)
