"""Files that are dropped on the list of markets: they are stored, looked at in another process, and become markets."""

import asyncio
import re
import secrets
from concurrent.futures import Future
from pathlib import Path
from shutil import rmtree
from typing import Any

from fastapi import APIRouter, Request

from rankstream.service.http.schemas import UploadedFile
from rankstream.service.http.write_routes import Market
from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.page.routes import header_of

MAX_FILES = 4  # that wait to be imported; the oldest one is deleted for another
MAX_UPLOAD_SECONDS = 600.0  # 100 MB at 170 kB/s; beyond, the connection hangs


def upload_routes(service: Service) -> APIRouter:
    """What the list of markets asks for a file; the guard checks the origin and the token before."""
    router = APIRouter(prefix="/page", include_in_schema=False)

    @router.post("/{market}/upload")
    async def upload(request: Request, market: Market, name: str = "file") -> dict[str, str]:
        plain = re.sub(r"[^\w.\- ]", "_", Path(name).name)[-80:].lstrip(".") or "file"
        service.uploads.mkdir(mode=0o700, exist_ok=True)
        folder, size = service.uploads / secrets.token_hex(8), 0
        folder.mkdir(mode=0o700)
        try:
            with (folder / plain).open("wb") as file:
                async with asyncio.timeout(MAX_UPLOAD_SECONDS):
                    async for part in request.stream():
                        size += len(part)
                        service.limits.check("upload", size)
                        file.write(part)
        except BaseException as error:
            rmtree(folder, ignore_errors=True)
            if isinstance(error, TimeoutError | OSError):
                raise RefusedError(507, "The file could not be stored: free some disk space, and try again.") from None
            raise
        for old in sorted(service.uploads.iterdir(), key=lambda one: one.stat().st_mtime)[:-MAX_FILES]:
            rmtree(old, ignore_errors=True)
        return {"file": folder.name, "market": market}

    def task_of(body: UploadedFile, step: str) -> dict[str, Any]:
        """What the process that reads files is told; a RefusedError where the file is gone."""
        path = next((service.uploads / body.file).glob("*"), None)
        if path is None:
            raise RefusedError(410, "The file is no longer on the server: drop it again.")
        reading = body.model_dump(exclude={"file", "by"}, exclude_none=True) | {"on_error": "skip"}
        return {"step": step, "path": str(path), "reading": reading, "by": body.by}

    @router.post("/{market}/reading")
    async def look(market: Market, body: UploadedFile) -> dict[str, Any]:
        task = task_of(body, "look")
        try:
            found: dict[str, Any] = await service.ask(service.looking, task)
        except RefusedError as refused:
            if refused.status != 429:  # nobody can mend this file here
                rmtree(service.uploads / body.file, ignore_errors=True)
            raise
        return found | {"is_taken": not body.by and any(one.market == market for one in service.markets())}

    @router.post("/{market}/import")
    async def import_file(request: Request, market: Market, body: UploadedFile) -> dict[str, Any]:
        task, options = task_of(body, "store"), service.options
        if body.by:
            service.tokens.check(header_of(request), "manage", None)
        task |= {"market": market, "limits": service.limits, "new_markets": options.new_markets}
        task |= {"fit": {"method": "auto", "budget": None, "seed": options.seed}}
        markets = await service.ask(service.importing, task)

        def ended(done: "Future[Any]") -> None:
            if not service.is_closing and (done.exception() is not None or done.result()[0] != 200):
                service.importing.submit(task | {"step": "fail", "markets": markets})

        service.fitting.submit(task | {"step": "fit"}).add_done_callback(ended)
        return {"markets": markets}

    return router
