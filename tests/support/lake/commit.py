"""One commit on its way: the files that it adds and removes, until it becomes a snapshot."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from tests.support.lake.deletes import Delete, write_positions
from tests.support.lake.files import (
    FileLayout,
    Rows,
    rows_to_plain,
    write_parquet,
    write_rows,
)
from tests.support.lake.manifests import (
    DATA,
    EQUALITY_DELETES,
    POSITION_DELETES,
    Entry,
    Spec,
    WrittenFile,
)
from tests.support.lake.partitions import apply, source_type
from tests.support.lake.puffin import read_vector_blob, write_puffin
from tests.support.lake.schemas import (
    LAST_UPDATED_SEQUENCE_NUMBER_ID,
    ROW_ID,
    Json,
    field_ids,
    prune,
    walk,
)
from tests.support.lake.values import Plain, plain

Positions = (
    Mapping[WrittenFile, Sequence[int]]
    | Mapping[str, Sequence[int]]
    | Mapping[WrittenFile | str, Sequence[int]]
)
"""Positions to delete, by data file or by its location."""

PLAIN_LAYOUT = FileLayout()

_LINEAGE = [
    {"id": ROW_ID, "name": "_row_id", "required": False, "type": "long"},
    {
        "id": LAST_UPDATED_SEQUENCE_NUMBER_ID,
        "name": "_last_updated_sequence_number",
        "required": False,
        "type": "long",
    },
]


class Table(Protocol):
    """What a commit needs to know of its table."""

    metadata: Json

    def local(self, location: str) -> Path: ...
    def new_location(self, name: str) -> str: ...
    def unpartitioned_spec_id(self) -> int: ...
    def lines(self, snapshot_id: int | None) -> list[dict[str, Any]]: ...
    def entries_of(self, line: Mapping[str, Any]) -> list[Entry]: ...
    def entries(self, snapshot_id: int | None) -> list[Entry]: ...


@dataclass(frozen=True)
class Added:
    """A file that the commit adds, and its data sequence number where it isn't the commit's own."""

    file: WrittenFile
    sequence_number: int | None = None


class Commit:
    """Collects what one snapshot changes.

    Files are written at once, manifests when the commit is finished.
    """

    def __init__(self, table: Table, snapshot_id: int, parent_id: int | None) -> None:
        self.table = table
        self.snapshot_id = snapshot_id
        self.parent_id = parent_id
        self.added: list[Added] = []
        self.removed: set[str] = set()
        self.rewritten: set[str] = set()
        self._numbers = itertools.count()

    # --- data -------------------------------------------------------------------------------------

    def append(
        self,
        rows: Rows,
        *,
        partition: Mapping[str, Any] | None = None,
        spec_id: int | None = None,
        schema_id: int | None = None,
        layout: FileLayout = PLAIN_LAYOUT,
        sequence_number: int | None = None,
        stored_lineage: bool = False,
        name: str | None = None,
    ) -> tuple[WrittenFile, ...]:
        """Write rows as one data file, or under a partitioned spec as one for each partition.

        - `partition`: value by partition field name, absent is null: one file under that tuple,
          whatever the rows hold
        - `schema_id`: write the file as an older writer would have
        - `stored_lineage`: store `_row_id` and `_last_updated_sequence_number`, keys of the rows
        - `name`: the file's name below the table's location
        """
        schema = self._schema(schema_id)
        if stored_lineage:
            schema = {**schema, "fields": [*schema["fields"], *_LINEAGE]}
        spec = self._spec(spec_id)
        files = []
        for tuple_, part in self._parts(schema, spec, rows, partition):
            location = self._data_location(layout.format, name)
            path = self.table.local(location)
            count, metrics, offsets = write_rows(path, schema, part, layout)
            files.append(
                WrittenFile(
                    location,
                    DATA,
                    layout.format,
                    count,
                    path.stat().st_size,
                    spec.spec_id,
                    tuple_,
                    metrics,
                    offsets,
                )
            )
        self.added += [Added(f, sequence_number) for f in files]
        return tuple(files)

    def append_arrow(
        self,
        table: pa.Table,
        *,
        partition: Mapping[str, Any] | None = None,
        spec_id: int | None = None,
        layout: FileLayout = PLAIN_LAYOUT,
        name: str | None = None,
    ) -> WrittenFile:
        """Write an Arrow table as one Parquet file, exactly as it is: its names, types and field
        ids, or none.

        Metrics cover the columns that have a field's name.
        """
        spec = self._spec(spec_id)
        location = self._data_location("parquet", name)
        path = self.table.local(location)
        count, metrics, offsets = write_parquet(path, table, self._schema(None), layout)
        values = self._tuple(spec, partition or {})
        size = path.stat().st_size
        file = WrittenFile(
            location,
            DATA,
            "parquet",
            count,
            size,
            spec.spec_id,
            values,
            metrics,
            offsets,
        )
        return self.add_file(file)

    def add_file(self, file: WrittenFile, sequence_number: int | None = None) -> WrittenFile:
        """Take a file as described, true or not: `dataclasses.replace` makes wrong metrics."""
        self.added.append(Added(file, sequence_number))
        return file

    def remove(self, *files: WrittenFile | str) -> None:
        """Mark files deleted: their manifests are written anew, with what is left as existing."""
        self.removed |= {_location(f) for f in files}

    def rewrite(self, *files: WrittenFile | str) -> None:
        """Write the manifests of these files anew, every live entry in them as existing."""
        self.rewritten |= {_location(f) for f in files}

    # --- deletes ----------------------------------------------------------------------------------

    def delete_positions(
        self,
        positions: Positions,
        *,
        rows: Mapping[WrittenFile | str, Sequence[Mapping[str, Any]]] | None = None,
        delete_files: int = 1,
        per_file: bool = False,
        reference: bool = True,
        sort: bool = True,
        path_type: pa.DataType | None = None,
        layout: FileLayout = PLAIN_LAYOUT,
        sequence_number: int | None = None,
    ) -> tuple[WrittenFile, ...]:
        """Write position delete files, one for each partition that the data files are in.

        - `rows`: the deleted rows' values, stored too
        - `delete_files`: deal the positions out to so many files
        - `per_file`: one for each data file
        - `reference`: say so in the manifest when a delete file is about one data file
        - `sort`: in order of path and position; else as given
        - `path_type`: the Arrow type of `file_path`, such as `large_string` or a dictionary
        """
        known = self.data_files()
        row_schema = None if rows is None else self._schema(None)
        groups: dict[Any, list[Delete]] = {}
        for file, numbers in positions.items():
            location = _location(file)
            target = known[location]
            values: Sequence[Mapping[str, Any] | None]
            values = [None] * len(numbers) if rows is None else rows[file]
            key = (target.spec_id, tuple(sorted(target.partition.items())))
            group = groups.setdefault((*key, location) if per_file else key, [])
            group += [(location, n, v) for n, v in zip(numbers, values, strict=True)]
        written = []
        for deletes in groups.values():
            if sort:
                deletes.sort(key=lambda d: d[:2])
            for part in range(min(delete_files, max(len(deletes), 1))):
                dealt = deletes[part::delete_files]
                target = known[dealt[0][0]]
                written.append(
                    self._write_positions(target, dealt, row_schema, path_type, layout, reference)
                )
        self.added += [Added(f, sequence_number) for f in written]
        return tuple(written)

    def _write_positions(
        self,
        target: WrittenFile,
        deletes: Sequence[Delete],
        row_schema: Json | None,
        path_type: pa.DataType | None,
        layout: FileLayout,
        reference: bool,
    ) -> WrittenFile:
        location = self._data_location(layout.format, None, "deletes")
        path = self.table.local(location)
        count, metrics, offsets = write_positions(path, deletes, row_schema, path_type, layout)
        paths = {d[0] for d in deletes}
        return WrittenFile(
            location,
            POSITION_DELETES,
            layout.format,
            count,
            path.stat().st_size,
            target.spec_id,
            target.partition,
            metrics,
            offsets,
            referenced_data_file=paths.pop() if reference and len(paths) == 1 else None,
        )

    def delete_equal(
        self,
        rows: Rows,
        columns: Sequence[str],
        *,
        partition: Mapping[str, Any] | None = None,
        spec_id: int | None = None,
        schema_id: int | None = None,
        stored: Sequence[str] = (),
        layout: FileLayout = PLAIN_LAYOUT,
        sequence_number: int | None = None,
    ) -> WrittenFile:
        """Write an equality delete file: it deletes rows that equal any of `rows` in all `columns`
        (dotted names).

        Without `partition` it is written under an unpartitioned spec, and so is global; the table
        gets such a spec if it has none. `stored` are columns that the file holds beside its keys.
        """
        schema = self._schema(schema_id)
        ids = field_ids(schema, columns)
        if partition is None:
            spec = self._spec(self.table.unpartitioned_spec_id() if spec_id is None else spec_id)
        else:
            spec = self._spec(spec_id)
        location = self._data_location(layout.format, None, "deletes")
        path = self.table.local(location)
        written = prune(schema, [*ids, *field_ids(schema, stored)])
        count, metrics, offsets = write_rows(path, written, rows, layout)
        file = WrittenFile(
            location,
            EQUALITY_DELETES,
            layout.format,
            count,
            path.stat().st_size,
            spec.spec_id,
            self._tuple(spec, partition or {}),
            metrics,
            offsets,
            equality_ids=tuple(ids),
        )
        return self.add_file(file, sequence_number)

    def write_vectors(
        self,
        positions: Positions,
        *,
        merge: bool = True,
        sequence_number: int | None = None,
    ) -> tuple[WrittenFile, ...]:
        """Write deletion vectors, all in one Puffin file; each takes the place of its data file's
        earlier one.

        merge: keep the positions of the earlier vector. Position delete files are left as they are:
        a vector that replaces some must be given their positions.
        """
        known = self.data_files()
        old = {
            e.file.referenced_data_file: e.file
            for e in self.table.entries(self.parent_id)
            if e.file.format == "puffin"
        }
        wanted: dict[str, list[int]] = {}
        for file, numbers in positions.items():
            location = _location(file)
            earlier = old.get(location)
            kept = self._read_vector(earlier) if earlier is not None and merge else []
            wanted[location] = sorted({*kept, *numbers})
            if earlier is not None:
                # vectors of other data files may lie in the same Puffin file
                self.removed.add(vector_key(earlier))
        location = self._data_location("puffin", None, "deletes")
        size, vectors = write_puffin(self.table.local(location), wanted)
        files = [
            WrittenFile(
                location,
                POSITION_DELETES,
                "puffin",
                v.cardinality,
                size,
                known[v.referenced_data_file].spec_id,
                known[v.referenced_data_file].partition,
                referenced_data_file=v.referenced_data_file,
                content_offset=v.offset,
                content_size_bytes=v.length,
            )
            for v in vectors
        ]
        self.added += [Added(f, sequence_number) for f in files]
        return tuple(files)

    def _read_vector(self, file: WrittenFile) -> list[int]:
        assert file.content_offset is not None
        assert file.content_size_bytes is not None
        raw = self.table.local(file.location).read_bytes()
        return read_vector_blob(
            raw[file.content_offset : file.content_offset + file.content_size_bytes]
        )

    # --- details ----------------------------------------------------------------------------------

    def _schema(self, schema_id: int | None) -> Json:
        metadata = self.table.metadata
        wanted = metadata["current-schema-id"] if schema_id is None else schema_id
        return next(s for s in metadata["schemas"] if s["schema-id"] == wanted)

    def _spec(self, spec_id: int | None) -> Spec:
        metadata = self.table.metadata
        return Spec.of(metadata, metadata["default-spec-id"] if spec_id is None else spec_id)

    def _data_location(self, format_: str, name: str | None, kind: str = "") -> str:
        number = next(self._numbers)
        suffix = f"-{kind}" if kind else ""
        default = f"data/{self.snapshot_id:016x}-{number:05d}{suffix}.{format_}"
        return self.table.new_location(name or default)

    def data_files(self) -> dict[str, WrittenFile]:
        files = [e.file for e in self.table.entries(self.parent_id)] + [a.file for a in self.added]
        return {f.location: f for f in files if f.content == DATA}

    def _tuple(self, spec: Spec, values: Mapping[str, Any]) -> dict[int, Plain]:
        unknown = values.keys() - {f["name"] for f in spec.fields}
        if unknown:
            raise KeyError(
                f"partition spec {spec.spec_id} has no field {', '.join(sorted(unknown))}"
            )
        return {
            f["field-id"]: plain(spec.types[f["field-id"]], values.get(f["name"]))
            for f in spec.fields
        }

    def _parts(
        self, schema: Json, spec: Spec, rows: Rows, partition: Mapping[str, Any] | None
    ) -> Iterator[tuple[dict[int, Plain], Rows]]:
        if partition is not None or not spec.fields:
            yield self._tuple(spec, partition or {}), rows
            return
        columns = {f["id"]: f["name"] for f in schema["fields"]}
        paths = {f["id"]: f for f in walk(schema)}
        parts: dict[tuple[Plain, ...], list[int]] = {}
        values = rows_to_plain(schema, rows)
        for number, row in enumerate(values):
            key = []
            for f in spec.fields:
                source = f["source-id"]
                if source not in columns:
                    raise ValueError(
                        f"{paths[source]['name']} is no top-level column: name the partition"
                    )
                type_ = source_type(self.table.metadata["schemas"], source)
                key.append(apply(f["transform"], type_, row[columns[source]]))
            parts.setdefault(tuple(key), []).append(number)
        for key_values, numbers in parts.items():
            tuple_ = {f["field-id"]: v for f, v in zip(spec.fields, key_values, strict=True)}
            if isinstance(rows, pa.Table | pa.RecordBatch):
                yield tuple_, rows.take(pa.array(numbers, pa.int64()))
            else:
                yield tuple_, [rows[n] for n in numbers]


def vector_key(file: WrittenFile) -> str:
    """Return what names a live file: its location, with a vector's place in the Puffin file."""
    return (
        file.location if file.content_offset is None else f"{file.location}#{file.content_offset}"
    )


def _location(file: WrittenFile | str) -> str:
    return file if isinstance(file, str) else vector_key(file)
