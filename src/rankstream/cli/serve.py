"""The command ``rankstream serve``: run the service, and manage its tokens and data."""

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rankstream._core.terminal import as_json as to_json
from rankstream._core.terminal import plural, print_answer, print_plain
from rankstream.cli.app import ShellCommand, ShellGroup
from rankstream.cli.options import AsJson

MISSING = 'This command needs extra packages: run pip install ".[serve]" in the checkout.'
Folder = Annotated[str, typer.Argument(help="Data folder of the service, or URL of its database.")]
MarketName = Annotated[str, typer.Argument(help="Name of the market.")]


def place_of(text: str) -> Any:
    """Return the folder or the URL that a command names."""
    from rankstream.service.storage import database

    return database.place_of(text)


serve = typer.Typer(
    cls=ShellGroup,
    no_args_is_help=True,
    help="Learn from choices that arrive over HTTP, and answer questions.\n\nExample: rankstream serve run shop",
)
token = typer.Typer(
    cls=ShellGroup,
    no_args_is_help=True,
    help="Create, list and revoke tokens.\n\nExample: rankstream serve token list shop",
)
serve.add_typer(token, name="token")


@serve.callback()
def private(context: typer.Context) -> None:
    """Make the files of these commands readable by their owner only."""
    before = os.umask(0o077)
    context.call_on_close(lambda: os.umask(before))


@serve.command(cls=ShellCommand)
def run(
    folder: Annotated[str, typer.Argument(help="Data folder, created if missing; or postgresql://user@host/name.")],
    host: Annotated[str, typer.Option(help="Address to listen on. Anything but loopback needs tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    keep: str | None = None,
    new_markets: Annotated[bool, typer.Option("--new-markets/--no-new-markets")] = True,
    allow_host: list[str] | None = None,
    limit: list[str] | None = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of new markets.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run the service until Ctrl-C, then save everything and exit with code 0.

    Example: rankstream serve run shop --port 8000 --keep 30d

    Options:
    keep: Delete records from the log this long after they arrived, once the model includes them, e.g. 30d.
    new_markets: Create a market when its first batch arrives.
    allow_host: Host name under which clients reach the server; repeat for several.
    limit: Change a limit, such as offers=5000; repeat for several. serve.md in docs/how-to lists them.
    """
    try:
        from rankstream.service.run import run as run_service
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
            print_plain(f"Serving {folder} at {address}; press Ctrl-C to stop.")

    run_service(place_of(folder), host, port, options, ready)


@serve.command(cls=ShellCommand)
def learn(
    url: Annotated[str, typer.Argument(help="URL of the database: postgresql://user@host/name.")],
    as_json: AsJson = False,
) -> None:
    """Update the models of a service whose data are in a database; run it on several machines to share the work.

    Example: rankstream serve learn postgresql://shop@db.example/shop
    """
    try:
        from rankstream.service.run import learn as learn_markets
    except ModuleNotFoundError as error:
        raise missing(error) from None

    place = place_of(url)
    if not isinstance(place, str):
        raise ValueError(f"{url} is not the URL of a database; 'rankstream serve run' learns the markets of a folder.")
    sentence = f"Learning markets of {place}; press Ctrl-C to stop."
    learn_markets(place, lambda: print_plain(to_json({"url": place}, indent=None) if as_json else sentence))


def seconds(keep: str | None, option: str = "--keep") -> float | None:
    """Convert a time such as 30d to seconds."""
    from datetime import timedelta

    from rankstream.data.decay import as_reach

    if keep is None:
        return None
    reach = as_reach(keep)
    if not isinstance(reach, timedelta):
        raise ValueError(f"{option} is {keep!r}, which is not a time: write 30d, 12h or 90min.")
    return reach.total_seconds()


def missing(error: ModuleNotFoundError) -> Exception:
    """Return an error that says what to install if the extra is missing; else the error itself."""
    known = ("fastapi", "uvicorn", "starlette", "pydantic", "prometheus_client", "httpx")
    return ValueError(MISSING) if (error.name or "").partition(".")[0] in known else error


@token.command(cls=ShellCommand)
def create(
    folder: Folder,
    market: Annotated[
        list[str], typer.Option(help="Market the token is valid for, or '*' for all; repeat for several.")
    ],
    may: Annotated[str, typer.Option(help="Permissions, separated by commas: write, read, manage.")] = "write,read",
    name: Annotated[str, typer.Option(help="Name shown by 'token list', such as who uses it.")] = "",
    expires: Annotated[str | None, typer.Option(help="Lifetime, such as 90d (default: no expiry).")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it once.

    Example: rankstream serve token create shop --market cafe --may write,read
    """
    from rankstream.service.storage import tokens

    secret = tokens.create(place_of(folder), market, may.split(","), name, seconds(expires, "--expires"))
    print_answer(as_json, {"token": secret}, secret)


@token.command("list", cls=ShellCommand)
def list_tokens(folder: Folder, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets.

    Example: rankstream serve token list shop
    """
    from rankstream.service.storage import tokens

    known, lines = tokens.listed(place_of(folder)), []
    for entry in known:
        made, ends = (time.strftime("%Y-%m-%d", time.gmtime(entry[when] or 0)) for when in ("made", "expires"))
        words = f"{entry['name']}  " if entry["name"] else ""
        if entry["expires"] is not None:
            words += f"expired {ends}  " if entry["expires"] <= time.time() else f"until {ends}  "
        lines.append(f"{entry['id']}  {made}  {words}may {', '.join(entry['may'])}: {', '.join(entry['markets'])}")
    print_answer(as_json, {"tokens": known}, "\n".join(lines) or "There are no tokens.")


@token.command(cls=ShellCommand)
def revoke(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="ID", help="Id shown by 'token list'.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token: it stops working at once.

    Example: rankstream serve token revoke shop 1a2b3c4d
    """
    from rankstream.service.storage import tokens

    tokens.revoke(place_of(folder), name)
    print_answer(as_json, {"revoked": name}, f"The token {name} is revoked.")


@serve.command(cls=ShellCommand)
def backup(
    folder: Folder, file: Annotated[Path, typer.Argument(help="Zip file to write.")], as_json: AsJson = False
) -> None:
    """Copy everything to one zip file, even while the service runs. To restore, unzip it into an empty folder.

    Example: rankstream serve backup shop shop.zip
    """
    from rankstream.service.storage import maintenance as folders

    size = folders.backup(place_of(folder), file)
    print_answer(as_json, {"file": str(file), "bytes": size}, f"Saved {file} ({size:,} bytes).")


@serve.command(cls=ShellCommand)
def export(
    folder: Folder,
    market: MarketName,
    file: Annotated[Path, typer.Argument(help="Output file: .parquet or .jsonl.")],
    as_json: AsJson = False,
) -> None:
    """Export the records of a market to a file for 'fit', even while the service runs.

    Example: rankstream serve export shop cafe cafe.parquet
    """
    from rankstream.service.storage import maintenance as folders

    number = folders.export(place_of(folder), market, file)
    print_answer(as_json, {"file": str(file), "records": number}, f"Saved {plural(number, 'record')} in {file}.")


@serve.command(cls=ShellCommand)
def purge(folder: Folder, market: MarketName, as_json: AsJson = False) -> None:
    """Delete a market and all of its data, even while the service runs.

    Example: rankstream serve purge shop cafe
    """
    from rankstream.service.storage import maintenance as folders

    number = folders.purge(place_of(folder), market)
    print_answer(as_json, {"market": market, "records": number}, f"Removed {market} with {plural(number, 'record')}.")


@serve.command(cls=ShellCommand)
def rebuild(
    folder: Annotated[str, typer.Argument(help="Data folder of the service (a database needs no rebuild).")],
    as_json: AsJson = False,
) -> None:
    """Rebuild all models from the log, if log and models come from different backups.

    Stop the server first. The old models are renamed, not deleted.

    Example: rankstream serve rebuild shop
    """
    from rankstream.service.storage import maintenance as folders

    name, records, dropped = folders.rebuild(place_of(folder))
    lost = f" {dropped:,} records that --keep deleted from the log are lost." if dropped else ""
    sentence = (
        f"The next 'rankstream serve run' rebuilds the models from {records:,} records. The old state "
        f"is kept as {name}.{lost}"
    )
    print_answer(as_json, {"file": name, "records": records, "dropped": dropped}, sentence)


@serve.command(cls=ShellCommand)
def migrate(
    source: Annotated[str, typer.Argument(help="Data folder or URL to move from; nothing may use it.")],
    target: Annotated[str, typer.Argument(help="Empty folder or database to move to.")],
    as_json: AsJson = False,
) -> None:
    """Move a service from a folder to a database, or back. The source is retired: nothing can be sent to it any more.

    Example: rankstream serve migrate shop postgresql://shop@db.example/shop
    """
    from rankstream.service.storage.migration import migrate as move

    number = move(place_of(source), place_of(target))
    print_answer(as_json, {"target": target, "records": number}, f"Moved {plural(number, 'record')} to {target}.")
