"""Stop PyIceberg at the pointer to a table's metadata.

PyIceberg's catalogs look up where the metadata is, and read and parse it at once with the FileIO
that they are given. Given this one, they end in an exception that says where: the file is then read
by floeberg, which knows rebased locations, keeps unknown keys, and reads tables that PyIceberg
can't parse.
"""

from __future__ import annotations

from typing import NoReturn

from pyiceberg.io import FileIO, InputFile, OutputFile

IMPLEMENTATION = f"{__name__}.PointerIO"
"""The value of PyIceberg's property `py-io-impl`."""


class MetadataPointer(Exception):
    """Where a table's metadata is, on its way through PyIceberg's frames."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class PointerIO(FileIO):
    """A FileIO that reads nothing."""

    def new_input(self, location: str) -> NoReturn:
        raise MetadataPointer(location)

    def new_output(self, location: str) -> OutputFile:
        raise PermissionError(f"floeberg writes nothing: {location}")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise PermissionError(f"floeberg deletes nothing: {location}")
