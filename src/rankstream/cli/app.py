"""The command line; bad input ends with one sentence and exit code 2.

Only the command in use is loaded, and slow imports are inside of it, so that help and completion are fast.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rankstream._core.terminal import visible
from rankstream._core.version import VERSION
from rankstream.cli.options import OPTIONS_HEADING, SALES, shell_words

COMMANDS = (
    *("open", "fit", "predict", "show", "plot", "decide", "report"),
    *("stream", "drift", "compare", "reproduce", "serve"),
)
"""Each is a module of this package with a function, or a group of commands, of the same name."""
PANELS = {
    "Model": ("method", "attributes", "tolerance", "no_standard_errors"),
    "Constraints": ("at_most", "at_least", "must", "never", "requires", "excludes", "capacity", "ladder", "changes"),
    "Input format": (
        *("price_columns", "price_levels", "no_choice", "outside_share", "format", "columns", "contents", "separator"),
        *("decimal", "dates", "encoding", "sheet", "partitions", "on_error", "rejects"),
    ),
    "Receipts": SALES,
    "Older choices": ("since", "half_life", "window"),
    "Several markets": ("by", "market", "pool"),
    "Running time": ("budget", "timeout", "jobs"),
    "Output": ("out", "title", "plot", "as_json", "seed", "help"),
}
"""The groups of options in the help, the most used first; required options and those in no group come first."""
INTERRUPTED_CODE = 130  # typer's exit code for Ctrl-C


class ShellCommand(TyperCommand):
    """A command whose help shows options in groups; longer help for an option comes from the docstring."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        text, _, listed = (keywords["help"] or "").partition(OPTIONS_HEADING)
        help_of = dict(line.split(": ", 1) for line in listed.replace("\n    ", " ").splitlines())
        for parameter in keywords["params"]:
            parameter.help = parameter.help or help_of.get(parameter.name)
        super().__init__(*arguments, **keywords | {"help": text})

    def get_params(self, ctx: Any) -> Any:
        """Return the options, sorted by group, and the arguments."""
        return _sorted_into_panels(_plain_types(super().get_params(ctx)))


class ShellGroup(TyperGroup):
    """A group of commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a wrong value of an option is an error of one sentence, as any other."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            option, words = getattr(error, "param", None), str(getattr(error, "message", "")).partition(", unable")[0]
            if option is None or not words.startswith("Input should be"):
                raise
            raise ValueError(f"{option.opts[0]} must be{words.removeprefix('Input should be')}.") from None

    def get_params(self, ctx: Any) -> Any:
        """Return the options of the group."""
        return _plain_types(super().get_params(ctx))


def _plain_types(parameters: list[Any]) -> list[Any]:
    for option in parameters:
        if option.metavar is None and (getattr(option, "is_flag", False) or getattr(option, "multiple", False)):
            option.metavar = "" if option.is_flag else "<str>"
    return parameters


def _sorted_into_panels(parameters: list[Any]) -> list[Any]:
    groups = [None, *PANELS]
    places = {name: (panel, place) for panel, names in PANELS.items() for place, name in enumerate(names)}

    def sort_key(parameter: Any) -> tuple[int, int]:
        if parameter.param_type_name != "option":
            return -1, 0
        panel, place = (None, 0) if parameter.required else places.get(parameter.name, (None, len(places)))
        if getattr(parameter, "rich_help_panel", None) is None:  # --help has none in typer 0.16
            parameter.rich_help_panel = panel
        return groups.index(parameter.rich_help_panel), place

    return sorted(parameters, key=sort_key)


def make_app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands."""
    app = typer.Typer(cls=ShellGroup, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(rankstream)
    for name in commands:
        command = getattr(import_module(f"rankstream.cli.{name}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(cls=ShellCommand)(command)
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

    'open' shows your data as a page in the browser, and 'fit' writes a model
    file. 'predict', 'show' and 'plot' answer questions from it, 'decide'
    finds the offer that earns most, and 'report' puts everything into one
    file. 'stream' keeps a model up to date from a growing file, and 'serve'
    over HTTP. 'drift' shows what changed, and 'compare' which kind of model
    predicts best.

    Most commands take --json, and --seed where results are random.
    Exit codes: 0 success, 1 interrupted or failed, 2 bad input.
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; errors go to standard error."""
    arguments = sys.argv[1:] if words is None else list(words)
    try:
        make_app(arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS)(arguments)
    except (ValueError, OSError) as error:
        _exit(str(error), 2)
    except MemoryError:
        _exit("not enough memory: use fewer items, offers or choices.", 1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED_CODE:
            _exit("interrupted.", 1)
        raise
    except Exception as error:
        if type(error).__module__ != "sqlite3":  # not imported here, because only services need it
            raise
        _exit(f"the service's database failed ({error}): check its disk and rights, or restore a backup.", 1)


def _exit(sentence: str, code: int) -> None:
    typer.echo(f"rankstream: {visible(shell_words(sentence), keep='')}", err=True)
    sys.exit(code)
