"""The command ``rankstream serve``: a service that learns from choices as they arrive, and what keeps it in order."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rankstream._core.terminal import as_json as to_json
from rankstream._core.terminal import print_json, print_plain
from rankstream.cli.app import ShellCommand, ShellGroup
from rankstream.cli.options import AsJson

MISSING = "This needs parts that are not installed: pip install 'rankstream[serve]'."
Folder = Annotated[Path, typer.Argument(help="The folder of the service, which has everything.")]
MarketName = Annotated[str, typer.Argument(help="The name of the market.")]

serve = typer.Typer(
    cls=ShellGroup,
    no_args_is_help=True,
    help="Learn from choices that arrive over HTTP, and answer questions.\n\nExample: rankstream serve run shop",
)
token = typer.Typer(
    cls=ShellGroup,
    no_args_is_help=True,
    help="Make, list and revoke tokens.\n\nExample: rankstream serve token list shop",
)
serve.add_typer(token, name="token")


@serve.command(cls=ShellCommand)
def run(
    folder: Annotated[Path, typer.Argument(help="The folder, which is made if absent, and has everything.")],
    host: Annotated[str, typer.Option(help="The address; others than this machine's need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000,
    keep: Annotated[
        str | None, typer.Option(help="Drop records that are learned from the log after this time (30d).")
    ] = None,
    new_markets: Annotated[
        bool, typer.Option("--new-markets/--no-new-markets", help="Whether the first batch of a market makes it.")
    ] = True,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that the server is called by; may be given again.")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help="A limit, such as offers=5000; may be given again.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for ties and random starts in markets that are made.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Serve until Ctrl-C or a signal to end; then save, and leave with code 0.

    Example: rankstream serve run shop --port 8000 --keep 30d
    """
    try:
        from rankstream.service.running import run as run_service
    except ModuleNotFoundError as error:
        raise missing(error) from None
    from rankstream.service.hub import Options
    from rankstream.service.limits import ServiceLimits

    names = [*(allow_host or []), *([] if host in ("0.0.0.0", "::") else [host])]
    options = Options(ServiceLimits().changed(limit or []), new_markets, seconds(keep), tuple(names), seed)

    def ready(address: str) -> None:
        if as_json:
            print_plain(to_json({"url": address, "folder": str(folder)}, indent=None))
        else:
            print_plain(f"Serving {folder} at {address}; Ctrl-C ends it.")

    run_service(folder, host, port, options, ready)


def seconds(keep: str | None) -> float | None:
    """A time such as 30d in seconds."""
    from datetime import timedelta

    from rankstream.data.forgetting import as_reach

    if keep is None:
        return None
    reach = as_reach(keep)
    if not isinstance(reach, timedelta):
        raise ValueError(f"--keep is {keep!r}, which is not a time: write 30d, 12h or 90min.")
    return reach.total_seconds()


def missing(error: ModuleNotFoundError) -> Exception:
    """What to install, where a part of the extra is missing; the error itself where it is another."""
    known = ("fastapi", "uvicorn", "starlette", "pydantic", "prometheus_client", "httpx")
    return ValueError(MISSING) if (error.name or "").partition(".")[0] in known else error


@token.command(cls=ShellCommand)
def create(
    folder: Folder,
    market: Annotated[list[str], typer.Option(help="A market that it is for, or '*'; may be given again.")],
    may: Annotated[str, typer.Option(help="What it allows, joined by commas: write, read, manage.")] = "write,read",
    as_json: AsJson = False,
) -> None:
    """Make a token, and print it once.

    Example: rankstream serve token create shop --market cafe --may write,read
    """
    from rankstream.service import tokens

    made = tokens.create(folder, market, may.split(","))
    if as_json:
        print_json({"token": made})
    else:
        print_plain(made)


@token.command("list", cls=ShellCommand)
def list_tokens(folder: Folder, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets.

    Example: rankstream serve token list shop
    """
    from rankstream.service import tokens

    found = tokens.listed(folder)
    if as_json:
        print_json({"tokens": found})
        return
    for one in found:
        made = time.strftime("%Y-%m-%d", time.gmtime(one["made"]))
        print_plain(f"{one['id']}  {made}  may {', '.join(one['may'])}: {', '.join(one['markets'])}")
    if not found:
        print_plain("There are no tokens.")


@token.command(cls=ShellCommand)
def revoke(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="ID", help="The id, as 'token list' shows it.")],
    as_json: AsJson = False,
) -> None:
    """Make a token worthless, at once.

    Example: rankstream serve token revoke shop 1a2b3c4d
    """
    from rankstream.service import tokens

    tokens.revoke(folder, name)
    say(as_json, f"The token {name} is worthless now.", revoked=name)


@serve.command(cls=ShellCommand)
def backup(
    folder: Folder, file: Annotated[Path, typer.Argument(help="The zip file to write.")], as_json: AsJson = False
) -> None:
    """Copy everything to one zip file, while the service runs; to restore, unpack it in an empty folder.

    Example: rankstream serve backup shop shop.zip
    """
    from rankstream.service import folder as folders

    size = folders.backup(folder, file)
    say(as_json, f"Saved {file} ({size:,} bytes).", file=str(file), bytes=size)


@serve.command(cls=ShellCommand)
def export(
    folder: Folder,
    market: MarketName,
    file: Annotated[Path, typer.Argument(help="The file to write: .parquet or .jsonl.")],
    as_json: AsJson = False,
) -> None:
    """Write the records of a market to a file that 'fit' reads, while the service runs.

    Example: rankstream serve export shop cafe cafe.parquet
    """
    from rankstream.service import folder as folders

    number = folders.export(folder, market, file)
    say(as_json, f"Saved {number:,} records in {file}.", file=str(file), records=number)


@serve.command(cls=ShellCommand)
def purge(folder: Folder, market: MarketName, as_json: AsJson = False) -> None:
    """Remove a market and everything that is known of it, while the service runs.

    Example: rankstream serve purge shop cafe
    """
    from rankstream.service import folder as folders

    number = folders.purge(folder, market)
    say(as_json, f"Removed {market} with {number:,} records.", market=market, records=number)


def say(as_json: bool, sentence: str, **content: object) -> None:
    """What was done, for people or for programs."""
    if as_json:
        print_json(content)
    else:
        print_plain(sentence)
