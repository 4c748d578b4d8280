"""A container as a process of this machine: its own command and environment, with the files that
its volumes hold.

What can't be had here is replaced: ports are free ones, services listen on loopback, and the paths
of volumes lead into the test's directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from floeberg.process.config import config_from_command_line
from floeberg.process.service import ServiceConfig
from floeberg.server.config import CoordinatorConfig
from floeberg.worker.config import WorkerConfig
from tests.support.processes import ServiceProcess

CONFIGS: Mapping[str, type[ServiceConfig]] = {
    "coordinator": CoordinatorConfig,
    "worker": WorkerConfig,
}
_MODE = 0o440
"""Of a file of a secret: its owner is another user, and the process reads it by its group."""


@dataclass(frozen=True)
class Container:
    """`argv` is what the container runs; `files` are those of its volumes, and `directories` its
    volumes that can be written to, by their paths in the container.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    directories: Sequence[str] = ()

    @property
    def service(self) -> str:
        """Whether it is a `coordinator` or a `worker`."""
        return next(s for s in CONFIGS if f"{self.argv} ".count(s))

    def config(self, directory: Path) -> ServiceConfig:
        """Return the configuration that its process reads, unchanged; `directory` is scratch."""
        told = directory / "told"
        path = _with_command(directory, f'printf "%s\\n" "$@" > {told}')
        subprocess.run(self.argv, env={**self.environment, "PATH": path}, check=True, timeout=30)
        service, *flags = told.read_text().splitlines()
        return config_from_command_line(
            CONFIGS[service], flags, self.environment, program=f"floeberg {service}", summary=""
        )

    @contextmanager
    def running(self, directory: Path, name: str, **changes: str) -> Iterator[ServiceProcess]:
        """Run it until the block ends, once it answers; `changes` replace variables.

        What its volumes hold goes into `directory`.
        """
        for path, content in self.files.items():
            there = directory / path.lstrip("/")
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(content)
                there.chmod(_MODE)
        for path in self.directories:
            (directory / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        volumes = (*(os.path.dirname(path) for path in self.files), *self.directories)
        environ = {
            key: f"{directory}{value}" if value.startswith(volumes) else value
            for key, value in self.environment.items()
        }
        here = {
            "PATH": _with_command(directory, f'exec {sys.executable} -m floeberg.embedded "$@"'),
            "FLOEBERG_HOST": "127.0.0.1",
            "FLOEBERG_HTTP_HOST": "127.0.0.1",
            "FLOEBERG_PORT": "0",
            "FLOEBERG_HTTP_PORT": "0",
        }
        process = ServiceProcess(self.argv, directory, name, environ | here | changes)
        try:
            process.await_ready()
            yield process
        finally:
            process.close()


def _with_command(directory: Path, script: str) -> str:
    """Return a PATH on which `floeberg` is this script."""
    there = directory / "bin"
    there.mkdir(exist_ok=True)
    command = there / "floeberg"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return os.pathsep.join([str(there), os.environ["PATH"]])
