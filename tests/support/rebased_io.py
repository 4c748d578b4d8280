"""A FileIO of PyIceberg's over a warehouse that was copied from where its metadata says it is."""

from __future__ import annotations

import json

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

REBASE = "test.rebase"
"""The property that holds the prefixes to replace, as a JSON object."""


class RebasedFileIO(PyArrowFileIO):
    """Reads what stands below a prefix from where the prefix is now, the longest prefix first."""

    def new_input(self, location: str) -> PyArrowFile:
        return super().new_input(self._rebased(location))

    def new_output(self, location: str) -> PyArrowFile:
        raise NotImplementedError("copies are only read")

    def _rebased(self, location: str) -> str:
        prefixes: dict[str, str] = json.loads(str(self.properties.get(REBASE, "{}")))
        for old in sorted(prefixes, key=len, reverse=True):
            if location.startswith(old):
                return prefixes[old] + location[len(old) :]
        return location
