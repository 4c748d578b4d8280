from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from floeberg.embedded import TableScan, open_table
from floeberg.embedded.cli.rows import RowFormat, csv_line, write_rows
from floeberg.protocol.errors import BadRequest
from tests.support.all_types import JSON, write_all_types


@pytest.fixture
def scan(tmp_path: Path) -> TableScan:
    write_all_types(tmp_path / "t")
    return open_table(tmp_path / "t").scan()


def written(scan: TableScan, format: RowFormat, path: Path) -> Path:
    write_rows(scan.schema(), scan.to_batches(), format, path)
    return path


def table_text(rows: pa.Table, path: Path, **options) -> str:
    write_rows(rows.schema, rows.to_batches(), RowFormat.TABLE, path, **options)
    return path.read_text()


# --- for a program --------------------------------------------------------------------------------


def test_json_is_an_object_a_line(scan: TableScan, tmp_path: Path):
    lines = written(scan, RowFormat.JSON, tmp_path / "out").read_text().splitlines()

    assert [json.loads(line) for line in lines] == [JSON, dict.fromkeys(JSON)]
    assert "ü" in lines[0]


def test_csv_has_the_same_values_with_nested_ones_as_json(scan: TableScan, tmp_path: Path):
    text = written(scan, RowFormat.CSV, tmp_path / "out").read_text()

    first, second = csv.DictReader(io.StringIO(text))
    for name, value in JSON.items():
        if isinstance(value, dict | list | bool | int | float):
            assert json.loads(first[name]) == value
        else:
            assert first[name] == (value or "")
    assert set(second.values()) == {""}


def test_csv_tells_null_from_the_empty_text(tmp_path: Path):
    rows = pa.table({"a": ["", None, " x "], "b": [None, "", "\n"]})
    write_rows(rows.schema, rows.to_batches(), RowFormat.CSV, tmp_path / "out")

    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=False, column_types=rows.schema
    )
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.csv.read_csv(tmp_path / "out", convert_options=options, parse_options=parsing)

    assert read == rows


def test_csv_has_a_line_for_a_row_of_one_null():
    assert csv_line([None]) == '""\n'
    assert csv_line([None, None]) == ",\n"


def test_arrow_is_the_ipc_stream_of_the_very_rows(scan: TableScan, tmp_path: Path):
    path = written(scan, RowFormat.ARROW, tmp_path / "out")

    assert pa.ipc.open_stream(path.read_bytes()).read_all() == scan.to_table()


def test_parquet_has_the_rows_and_the_field_ids(scan: TableScan, tmp_path: Path):
    path = written(scan, RowFormat.PARQUET, tmp_path / "out")

    read = pq.read_table(path)
    assert read == scan.to_table()
    ids = [field.metadata[b"PARQUET:field_id"] for field in read.schema]
    assert ids == [field.metadata[b"PARQUET:field_id"] for field in scan.schema()]


def test_parquet_needs_a_file_and_a_column(scan: TableScan, tmp_path: Path):
    with pytest.raises(BadRequest, match="--output"):
        write_rows(scan.schema(), [], RowFormat.PARQUET, None)
    with pytest.raises(BadRequest, match="select a column"):
        write_rows(pa.schema([]), [], RowFormat.PARQUET, tmp_path / "out")


@pytest.mark.parametrize("format", list(RowFormat))
def test_a_scan_that_fails_leaves_no_file(scan: TableScan, tmp_path: Path, format: RowFormat):
    def failing():
        yield from scan.to_batches()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_rows(scan.schema(), failing(), format, tmp_path / "out")

    assert not (tmp_path / "out").exists()


# --- for a person ---------------------------------------------------------------------------------


def test_a_table_shows_every_value_on_its_row(scan: TableScan, tmp_path: Path):
    text = table_text(scan.to_table(), tmp_path / "out")

    assert all(name in text for name in JSON)
    assert "-0.05" in text
    assert '{"a": 1, "b": {"day": "1970-01-01"}}' in text
    assert "a,\"b\"\\n'ü'" in text
    assert text.endswith("\n2 rows\n")
    assert len({len(line) for line in text.splitlines()[:-1]}) == 1


@pytest.mark.parametrize(
    ("rows", "shown", "said"),
    [
        (0, 3, "0 rows"),
        (1, 3, "1 row"),
        (3, 3, "3 rows"),
        (4, 3, "3 rows shown, and there are more: say --limit, or another --format"),
        (4, None, "4 rows"),
    ],
)
def test_a_table_says_how_many_rows_it_shows(tmp_path: Path, rows: int, shown, said: str):
    text = table_text(pa.table({"n": range(rows)}), tmp_path / "out", shown_rows=shown)

    assert text.splitlines()[-1] == said
    assert text.count("│") == 2 * min(rows, shown or rows)


def test_a_table_without_columns_is_the_number_of_its_rows(tmp_path: Path):
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 5, pa.struct([])))

    assert table_text(pa.Table.from_batches([batch]), tmp_path / "out") == "5 rows\n"


def test_control_characters_and_markup_are_shown_as_they_are(tmp_path: Path):
    rows = pa.table({"[red]\x1b[0m": ["\x1b]0;title\x07", "[bold]x[/bold]"]})

    text = table_text(rows, tmp_path / "out")

    assert "\x1b" not in text
    assert r"\x1b]0;title\x07" in text
    assert "[bold]x[/bold]" in text
    assert r"[red]\x1b[0m" in text
