"""`floeberg` is a namespace with one source root per side."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def test_no_root_claims_the_namespace_for_itself():
    # one stray file hides the other roots, and the type checkers do not notice
    assert list(REPOSITORY.glob("*/floeberg/__init__.py")) == []


@pytest.mark.parametrize(
    ("root", "package"),
    [
        ("protocol", "protocol"),
        ("protocol", "process"),
        ("protocol", "client"),
        ("server", "server"),
        ("server", "embedded"),
        ("worker", "worker"),
    ],
)
def test_each_package_is_typed_and_comes_from_its_own_root(root: str, package: str):
    module = importlib.import_module(f"floeberg.{package}")

    folder = REPOSITORY / root / "floeberg" / package
    assert {Path(place) for place in module.__path__} == {folder}
    assert (folder / "py.typed").is_file()
