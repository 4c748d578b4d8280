"""What docs/deployment.md tells its reader to type."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from floeberg.embedded.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"


def make_secrets(place: str, checkout: Path) -> str:
    """Run the page's commands that make files below `place`, a folder of the repository, in another
    `checkout`. Returns what they print: the token.
    """
    printed = ""
    for command in re.findall(
        rf"^\$ ((?:mkdir|floeberg) .*{place}/secrets.*)$", PAGE.read_text("utf-8"), re.MULTILINE
    ):
        program, *arguments = shlex.split(command.replace(place, str(checkout / place)))
        if program == "mkdir":
            os.makedirs(arguments[-1], exist_ok=True)
            continue
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        printed = done.stdout.strip()
    return printed
