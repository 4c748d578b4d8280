from __future__ import annotations

import pyarrow as pa
import pytest

from floeberg.process.sql.shown_schemas import shown_schema
from floeberg.protocol.errors import UnsupportedSql


def test_types_that_duckdb_may_lack_are_shown_as_their_bytes() -> None:
    named = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": b"{}"}
    geometry = pa.field("g", pa.binary(), metadata=named)

    shown = shown_schema(pa.schema([geometry, pa.field("n", pa.struct([geometry]))]))

    assert not shown.field("g").metadata
    assert not shown.field("n").type.field(0).metadata
    assert shown_schema(pa.schema([pa.field("u", pa.uuid())])).field("u").type == pa.uuid()


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    with pytest.raises(UnsupportedSql, match="'a' and 'A' differ in case alone"):
        shown_schema(pa.schema([("a", pa.int64()), ("A", pa.int64())]))
