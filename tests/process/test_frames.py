from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from floeberg.process.frames import to_pandas, to_polars
from floeberg.protocol.errors import BadConfig

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})


def test_rows_become_frames():
    assert to_pandas(lambda: ROWS, {"strings_to_categorical": True})["name"].dtype == "category"
    assert to_polars(lambda: ROWS).to_dict(as_series=False) == ROWS.to_pydict()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named_with_its_command_before_anything_is_read(
    package: str, monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []

    def rows() -> pa.Table:
        read.append("rows")
        return ROWS

    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed

    with pytest.raises(BadConfig, match=rf"pip install {package} \(or .*'floeberg\[{package}\]'"):
        to_pandas(rows, {}) if package == "pandas" else to_polars(rows)
    assert read == []
