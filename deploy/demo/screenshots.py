"""Take the pictures of the status pages that are in docs/: `python -m deploy.demo.screenshots`.

Serves the demo's lake to a few clients at once, some of them slow and some wrong, and looks at
coordinator and worker with a real browser: at a desktop's width and a phone's, light and dark. It
fails where the browser complains, or where a page is wider than its window. With `pngquant` the
pictures are a third as large.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pyarrow.flight as fl
from rich.console import Console

from deploy.demo.__main__ import CHECKOUT, prepare_lake
from deploy.demo.service import Service
from floeberg.client import connect
from floeberg.protocol.errors import FloebergError
from tests.support.browser import Browser, browser, is_installed

WORKERS = 3
LOAD_SECONDS = 8.0
SETTLED_SECONDS = 7.0  # until slow clients count as such, and workers have said so
DESKTOP, PHONE = (1280, 900), (390, 844)
MOST_HEIGHT = 1400


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.demo.screenshots", description=__doc__)
    parser.add_argument("--directory", type=Path, default=CHECKOUT / ".demo")
    parser.add_argument("--to", type=Path, default=CHECKOUT / "docs" / "images")
    arguments = parser.parse_args()
    if not is_installed():
        sys.stderr.write("chromium and chromedriver are needed (Debian: chromium-driver)\n")
        return 1
    directory: Path = arguments.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    arguments.to.mkdir(parents=True, exist_ok=True)
    warehouse = prepare_lake(Console(stderr=True), directory)
    with ExitStack() as stack:
        service = stack.enter_context(Service(warehouse, WORKERS, directory, 0))
        addresses = service.addresses()
        stack.enter_context(load(addresses.coordinator))
        window = stack.enter_context(browser())
        worker = _busiest(addresses.http)
        for name, page, size, is_dark in (
            ("status-coordinator", addresses.http, DESKTOP, False),
            ("status-coordinator-phone", addresses.http, PHONE, False),
            ("status-worker", worker, DESKTOP, True),
            ("status-worker-phone", worker, PHONE, False),
        ):
            take(window, f"{page}/status", arguments.to / f"{name}.png", size, is_dark=is_dark)
    return 0


def take(window: Browser, url: str, path: Path, size: tuple[int, int], *, is_dark: bool) -> None:
    """Write a picture of a page, once it has refreshed itself."""
    width, height = size
    window.resize(width, height, is_phone=width < 600, is_dark=is_dark)
    window.open(url)
    before = window.run("window.before = document.querySelector('section'); return true")
    while before and window.run("return window.before.isConnected"):
        time.sleep(0.2)
    complaints = window.complaints()
    assert not complaints, complaints
    page_width = window.run("return document.documentElement.scrollWidth")
    assert page_width <= width, f"{url} is {page_width} wide in a window of {width}"
    page_height = window.run("return document.documentElement.scrollHeight")
    window.screenshot(path, width, min(page_height, MOST_HEIGHT))
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "64", str(path)], check=True)
    sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")


def _busiest(http: str) -> str:
    workers = httpx.get(f"{http}/status.json").json()["workers"]
    busiest = max(workers, key=lambda worker: int(worker["streams"]))
    return str(busiest["http_address"])


# --- load ----------------------------------------------------------------------------------------


@contextmanager
def load(coordinator: str) -> Iterator[None]:
    """Have clients ask and read within the block, which begins once there is something to see."""
    ended = threading.Event()
    threads = [
        threading.Thread(target=_repeat, args=(client, coordinator, ended), daemon=True)
        for client in (_reads_all, _counts, _asks_wrongly, _reads_slowly, _stands_still)
    ]
    for thread in threads:
        thread.start()
    time.sleep(LOAD_SECONDS + SETTLED_SECONDS)
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


Client = Callable[[str, threading.Event], None]


def _repeat(client: Client, coordinator: str, ended: threading.Event) -> None:
    while not ended.is_set():
        client(coordinator, ended)
        ended.wait(1.0)


def _reads_all(coordinator: str, ended: threading.Event) -> None:
    with connect(coordinator) as lake:
        for table, filter_ in (
            ("nyc.trips", None),
            ("nyc.trips", "picked_up_at >= '2024-10-01T00:00:00' AND distance > 20"),
            ("shop.orders", None),
            ("shop.events", None),
        ):
            for _ in lake.table(table).scan(filter=filter_).to_batches():
                if ended.is_set():
                    return


def _counts(coordinator: str, _: threading.Event) -> None:
    with connect(coordinator) as lake:
        trips = lake.table("nyc.trips")
        trips.scan(filter="picked_up_at >= '2024-06-01T00:00:00'").count()
        trips.scan(filter="distance > 20").explain()


def _asks_wrongly(coordinator: str, ended: threading.Event) -> None:
    with connect(coordinator) as lake:
        for table, filter_ in (("nyc.trip", None), ("nyc.trips", "distance > 'far'")):
            try:
                lake.table(table).scan(filter=filter_).to_arrow()
            except FloebergError:
                ended.wait(3.0)


def _reads_slowly(coordinator: str, ended: threading.Event) -> None:
    with connect(coordinator) as lake:
        for _ in lake.table("nyc.trips").scan().to_batches():
            if ended.wait(0.3):
                return


def _stands_still(coordinator: str, ended: threading.Event) -> None:
    """Open every endpoint, as some clients do, take one batch of each and then nothing."""
    with ExitStack() as stack:
        command = json.dumps({"table": "nyc.trips"})
        info = stack.enter_context(fl.connect(coordinator)).get_flight_info(
            fl.FlightDescriptor.for_command(command)
        )
        readers = []
        for endpoint in info.endpoints:
            worker = stack.enter_context(fl.connect(endpoint.locations[0]))
            readers.append(worker.do_get(endpoint.ticket))
        for reader in readers:
            reader.read_chunk()
        ended.wait()
        for reader in readers:
            reader.cancel()


if __name__ == "__main__":
    sys.exit(main())
