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

COMMANDS = (
    *("demo", "fit", "predict", "show", "plot", "decide", "report"),
    *("stream", "drift", "compare", "reproduce", "serve"),
)
"""Each is a file of this folder with a function of that name, or a group of commands."""
INTERRUPTED = 130  # what typer makes of Ctrl-C


class ShellCommand(TyperCommand):
    """A command whose help shows flags without a type: they take no value."""

    def get_params(self, ctx: Any) -> Any:
        """The options and arguments."""
        return _plain_flags(super().get_params(ctx))


class ShellGroup(TyperGroup):
    """All commands; the same for the flags beside them."""

    def get_params(self, ctx: Any) -> Any:
        """The options and arguments."""
        return _plain_flags(super().get_params(ctx))


def _plain_flags(parameters: Any) -> Any:
    for one in parameters:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""
    return parameters


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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Non-parametric choice models, estimated and certified while the choices arrive.

    Begin with 'demo'. With choices of your own, 'fit' makes a model file;
    'predict', 'show' and 'plot' say what is in it, 'decide' which offer to
    make, and 'report' puts it all on a page. 'stream' keeps a model current
    while choices arrive, 'serve' does so over HTTP and answers questions,
    'drift' shows what changed, and 'compare' which kind of model suits your
    data.

    Every command takes --json, and --seed where chance has a part.
    Exit codes: 0 done, 1 interrupted or failed, 2 bad input.
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; what is wrong with the input goes to standard error."""
    given = sys.argv[1:] if words is None else list(words)
    try:
        make_app(given[:1] if given and given[0] in COMMANDS else COMMANDS)(given)
    except (ValueError, OSError) as error:
        _leave(str(error), 2)
    except MemoryError:
        _leave("this takes more memory than there is: give it fewer items, offers or choices.", 1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _leave("interrupted.", 1)
        raise


def _leave(sentence: str, code: int) -> None:
    typer.echo(f"rankstream: {visible(sentence, keep='')}", err=True)
    sys.exit(code)
