"""A headless Chromium, spoken to by the WebDriver protocol: for what only a real browser shows.

It needs `chromedriver` and Chromium on PATH (Debian: `chromium-driver`, `chromium`).
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

_SECONDS = 60.0
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # it refuses to run as root with one
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
)


def is_installed() -> bool:
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    """One window of a browser."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http = http
        self._session = session

    def _ask(self, command: str, **body: object) -> Any:
        answer = self._http.post(f"/session/{self._session}/{command}", json=body)
        value = answer.json()["value"]
        assert answer.is_success, value
        return value

    def cdp(self, command: str, **parameters: object) -> Any:
        """Send a command of the Chrome DevTools Protocol."""
        return self._ask("goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width: int, height: int, *, is_phone: bool, is_dark: bool) -> None:
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=is_phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self._ask("url", url=url)

    def run(self, script: str) -> Any:
        """Return what a script returns that runs on the page."""
        return self._ask("execute/sync", script=script, args=[])

    def complaints(self) -> list[str]:
        """Return what the browser has written to its console since the last time: errors of
        scripts, and what the page's policy forbade.
        """
        return [str(entry["message"]) for entry in self._ask("se/log", type="browser")]

    def screenshot(self, path: Path, width: int, height: int) -> None:
        """Write the top of the page as PNG, whatever of it fits into the window."""
        shot = self.cdp(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
        )
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a browser with an empty profile of its own."""
    with tempfile.TemporaryDirectory(prefix="floeberg-browser-") as profile:
        driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            with httpx.Client(base_url=_address(driver), timeout=_SECONDS, trust_env=False) as http:
                session = _new_session(http, {"args": [*_FLAGS, f"--user-data-dir={profile}"]})
                try:
                    yield Browser(http, session)
                finally:
                    http.delete(f"/session/{session}")
        finally:
            driver.terminate()
            driver.wait()


def _address(driver: subprocess.Popen[str]) -> str:
    assert driver.stdout is not None
    for line in driver.stdout:
        if "started successfully on port" in line:
            return f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
    raise AssertionError("chromedriver ended before it said its port")


def _new_session(http: httpx.Client, options: Mapping[str, object]) -> str:
    wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    answer = http.post("/session", json={"capabilities": {"alwaysMatch": wanted}})
    value = answer.json()["value"]
    assert answer.is_success, value
    session: str = value["sessionId"]
    return session
