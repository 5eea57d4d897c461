"""The command line: thin commands over the library; bad input is one sentence and exit code 2."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from rankstream import commands, time_commands

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
INTERRUPTED = 130  # what typer makes of Ctrl-C


def _show_version(wanted: bool) -> None:
    if wanted:
        from rankstream import __version__

        typer.echo(f"rankstream {__version__}")
        raise typer.Exit


@app.callback()
def rankstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Non-parametric choice models, estimated and certified while the choices arrive.

    Begin with 'demo'. With choices of your own, 'fit' makes a model file;
    'predict', 'show' and 'plot' tell what is in it. 'stream' keeps a model
    current while choices come, 'drift' tells what changed, and 'compare'
    which kind of model suits your data.

    Every command takes --json and --seed.
    Exit codes: 0 done, 1 interrupted or failed, 2 bad input.
    """


for command in (
    commands.demo,
    commands.fit,
    commands.predict,
    commands.show,
    commands.plot,
    time_commands.stream,
    time_commands.drift,
    commands.compare,
    commands.reproduce,
):
    app.command()(command)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; what is wrong with the input goes to standard error."""
    try:
        app(words)
    except (ValueError, OSError) as error:
        _leave(str(error), 2)
    except MemoryError:
        _leave("this takes more memory than there is: give it fewer items, offers or choices.", 1)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _leave("interrupted.", 1)
        raise


def _leave(sentence: str, code: int) -> None:
    typer.echo(f"rankstream: {sentence}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
