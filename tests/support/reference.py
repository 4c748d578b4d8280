"""The slow, obviously right reader: plain Python, row by row, over what the files hold.

It prunes nothing and is clever about nothing: every live file is read whole, every row gets its
columns by the spec's rules, then deletes, then the filter. Tests of planning and reading compare
with it, so it imports nothing from floeberg.

    rows = read_table(directory, filter=[">", "amount", 10], select=["id", "_pos"])
    assert multiset(plain_rows(result)) == multiset(rows)

Spec: "Scan Planning", "Column Projection", "Delete Formats", "Row Lineage".
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.filters import columns_of, resolve, truth
from tests.support.plain import Json, Plain, Row, hashable
from tests.support.projection import Contents, pruned_to
from tests.support.stored import StoredFile, avro_by_id, read_file, read_vector

FILE_PATH_ID, POS_ID = 2147483546, 2147483545
ROW_ID_ID, LAST_UPDATED_ID = 2147483540, 2147483539

_METADATA_COLUMNS = {
    "_file": "string",
    "_pos": "long",
    "_spec_id": "int",
    "_deleted": "boolean",
    "_row_id": "long",
    "_last_updated_sequence_number": "long",
}
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2


@dataclass(frozen=True)
class File:
    """A live entry of a manifest after inheritance. `raw` is the `data_file` struct by field id."""

    raw: Mapping[int, Any]
    spec_id: int
    partition: Mapping[int, Plain]
    sequence_number: int
    first_row_id: int | None

    @property
    def location(self) -> str:
        return str(self.raw[100])

    @property
    def content(self) -> int:
        return int(self.raw.get(134) or DATA)

    @property
    def is_vector(self) -> bool:
        return str(self.raw[101]).lower() == "puffin"


def read_table(
    table: Path | str,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of_ms: int | None = None,
    filter: Json = None,
    select: Sequence[str] | None = None,
    case_sensitive: bool = True,
    rebase: Mapping[str, str] | None = None,
) -> list[Row]:
    """Return a scan's rows as plain values by column name, in no particular order.

    table: a table's directory, or a metadata file. The three ways to name a snapshot exclude each
    other. rebase: prefixes of locations and what to put in their place.
    """
    scan = PlainScan.of(table, snapshot_id=snapshot_id, ref=ref, as_of_ms=as_of_ms, rebase=rebase)
    return scan.answer(scan.rows(), filter, select, case_sensitive)


def _with_metadata_columns(schema: Json, metadata: Json) -> Json:
    known = {f["name"] for f in schema["fields"]}
    columns: dict[str, Json] = dict(_METADATA_COLUMNS)
    names = {f["name"]: f for s in metadata.get("partition-specs", ()) for f in s["fields"]}
    columns["_partition"] = {
        "type": "struct",
        "fields": [
            {"id": f.get("field-id"), "name": n, "type": "unknown"} for n, f in names.items()
        ],
    }
    extra = [{"id": -1, "name": n, "type": t} for n, t in columns.items() if n not in known]
    return {"fields": [*schema["fields"], *extra]}


def _selected(row: Row, paths: Sequence[Sequence[str]]) -> Row:
    """Return the row with only what the paths reach, pruned below a column that several share."""
    out: Row = {}
    for name in dict.fromkeys(path[0] for path in paths):
        below = [path[1:] for path in paths if path[0] == name]
        whole = any(not path for path in below) or row[name] is None
        out[name] = row[name] if whole else _selected_below(row[name], below)
    return out


def _selected_below(value: Plain, paths: Sequence[Sequence[str]]) -> Plain:
    if value is None or not all(paths):
        return value
    if isinstance(value, dict):
        chosen = _selected(value, paths)
        return {name: chosen[name] for name in value if name in chosen}  # in the schema's order
    below = [path[1:] for path in paths if path[0] in ("element", "value")]
    if not below:
        return value  # of a map, only the key: which without its values means nothing
    if paths[0][0] == "element":
        return [_selected_below(v, below) for v in value]
    return [(key, _selected_below(v, below)) for key, v in value]


@dataclass(frozen=True)
class PlainScan:
    """One snapshot of a table, under the schema that it is read with.

    For many questions of one snapshot: `rows` reads it once, `answer` takes what it returned.
    """

    metadata: Json
    snapshot: Json | None
    schema: Json
    rebase: Mapping[str, str]

    # --- which snapshot, which schema -------------------------------------------------------------

    @classmethod
    def of(
        cls,
        table: Path | str,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of_ms: int | None = None,
        rebase: Mapping[str, str] | None = None,
    ) -> PlainScan:
        assert sum(x is not None for x in (snapshot_id, ref, as_of_ms)) <= 1
        path = Path(table)
        path = _metadata_file(path) if path.is_dir() else path
        raw = path.read_bytes()
        metadata = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        assert metadata["format-version"] <= 3
        metadata.setdefault("schemas", [metadata.get("schema")])
        is_branch = True
        current: Any = metadata.get("current-snapshot-id")
        if ref is not None and ref in metadata.get("refs", {}):
            snapshot_id = metadata["refs"][ref]["snapshot-id"]
            is_branch = metadata["refs"][ref]["type"] == "branch"
        elif ref is not None:
            assert ref == "main", f"no ref {ref!r}"
            snapshot_id = current
        elif as_of_ms is not None:
            log = [e for e in metadata["snapshot-log"] if e["timestamp-ms"] <= as_of_ms]
            snapshot_id, is_branch = log[-1]["snapshot-id"], False
        elif snapshot_id is not None:
            is_branch = False
        else:
            snapshot_id = current
        if snapshot_id in (None, -1):
            return cls(metadata, None, _schema(metadata, None), rebase or {})
        snapshot = next(s for s in metadata["snapshots"] if s["snapshot-id"] == snapshot_id)
        schema = _schema(metadata, None if is_branch else snapshot.get("schema-id"))
        return cls(metadata, snapshot, schema, rebase or {})

    def local(self, location: str) -> Path:
        for old, new in self.rebase.items():
            if location.startswith(old):
                return Path(new + location.removeprefix(old))
        return Path(re.sub(r"^file:(//)?(?=/)", "", location))

    # --- which files ------------------------------------------------------------------------------

    def files(self) -> list[File]:
        if self.snapshot is None:
            return []
        if "manifest-list" not in self.snapshot:  # v1
            return [
                file
                for location in self.snapshot["manifests"]
                for file in self._manifest({500: location, 502: None})
            ]
        lines, _ = avro_by_id(self.local(self.snapshot["manifest-list"]).read_bytes())
        return [file for line in lines for file in self._manifest(line)]

    def _manifest(self, line: Mapping[int, Any]) -> Iterator[File]:
        entries, properties = avro_by_id(self.local(line[500]).read_bytes())
        spec_id = (
            line[502] if line[502] is not None else int(properties.get("partition-spec-id", 0))
        )
        next_row_id = line.get(520)
        for entry in entries:
            raw = entry[2]
            status, deleted = entry[0], entry[0] == 2
            sequence_number = entry.get(3)
            if sequence_number is None:
                sequence_number = (line.get(515) or 0) if status == 1 else 0
            first_row_id = raw.get(142)
            if first_row_id is None and next_row_id is not None and not deleted:
                first_row_id = next_row_id
                next_row_id += raw[103]
            if not deleted:
                yield File(raw, spec_id, raw.get(102) or {}, sequence_number, first_row_id)

    # --- rows -------------------------------------------------------------------------------------

    def truth(self, filter: Json, row: Row, case_sensitive: bool = True) -> bool | None:
        """Return what a filter says of one of the `rows`; None is unknown."""
        schema = _with_metadata_columns(self.schema, self.metadata)
        return truth(filter, row, schema, case_sensitive)

    def answer(
        self,
        rows: Iterable[Row],
        filter: Json = None,
        select: Sequence[str] | None = None,
        case_sensitive: bool = True,
    ) -> list[Row]:
        """Return the `rows` of which the filter is true, with the columns selected."""
        wanted = filter or ["true"]
        schema = _with_metadata_columns(self.schema, self.metadata)
        for name in columns_of(wanted):
            resolve(name, schema, case_sensitive)
        rows = [row for row in rows if truth(wanted, row, schema, case_sensitive) is True]
        if select is None:
            names = [f["name"] for f in self.schema["fields"]]
            return [{name: row[name] for name in names} for row in rows]
        paths = [resolve(name, schema, case_sensitive)[0] for name in select]
        return [_selected(row, paths) for row in rows]

    def rows(self) -> Iterator[Row]:
        """Yield the live rows with all columns, metadata columns among them."""
        files = self.files()
        for file in files:
            if file.content == DATA and file.raw[103] != 0:
                yield from self._live_rows(file, [f for f in files if f.content != DATA])

    def _live_rows(self, file: File, deletes: Sequence[File]) -> Iterator[Row]:
        data = self._open(file)
        positions = self._deleted_positions(file, deletes)
        keys = [
            (fields, self._deleted_keys(delete, fields))
            for delete in deletes
            if _equality_delete_applies(delete, file, self.metadata)
            for fields in [self._key_fields(delete)]
        ]
        for pos, values in enumerate(data.stored.rows):
            if pos in positions:
                continue
            if any(data.key(values, fields) in deleted for fields, deleted in keys):
                continue
            row = data.row(values, self.schema["fields"])
            yield {**self._metadata_columns(data.stored, values, file, pos), **row}

    def _open(self, file: File) -> Contents:
        return Contents(
            file.location,
            read_file(self.local(file.location), str(file.raw[101])),
            _identity_values(file, self.metadata),
            _name_mapping(self.metadata),
        )

    def _metadata_columns(
        self, stored: StoredFile, values: Sequence[Plain], file: File, pos: int
    ) -> Row:
        stored_ids = {f.field_id: v for f, v in zip(stored.fields, values, strict=True)}
        row_id = last_updated = None
        if file.first_row_id is not None:
            row_id = stored_ids.get(ROW_ID_ID)
            row_id = file.first_row_id + pos if row_id is None else row_id
            last_updated = stored_ids.get(LAST_UPDATED_ID)
            last_updated = file.sequence_number if last_updated is None else last_updated
        names = {f["field-id"]: f["name"] for s in _specs(self.metadata) for f in s["fields"]}
        return {
            "_file": file.location,
            "_pos": pos,
            "_spec_id": file.spec_id,
            "_deleted": False,
            "_partition": {name: file.partition.get(i) for i, name in sorted(names.items())},
            "_row_id": row_id,
            "_last_updated_sequence_number": last_updated,
        }

    # --- deletes ----------------------------------------------------------------------------------

    def _deleted_positions(self, file: File, deletes: Sequence[File]) -> set[int]:
        near = [
            d
            for d in deletes
            if d.content == POSITION_DELETES
            and file.sequence_number <= d.sequence_number
            and _same_partition(d, file)
            and d.raw.get(143) in (None, file.location)
        ]
        vectors = [d for d in near if d.is_vector]
        if vectors:  # they replace position delete files
            (vector,) = vectors
            return read_vector(self.local(vector.location), vector.raw[144], vector.raw[145])
        positions: set[int] = set()
        for delete in near:
            stored = self._open(delete).stored
            path, pos = stored.column(FILE_PATH_ID, "file_path"), stored.column(POS_ID, "pos")
            positions |= {r[pos] for r in stored.rows if r[path] == file.location}
        return positions

    def _key_fields(self, delete: File) -> list[Json]:
        """Return the columns that lead to the delete's keys, a column for each key, pruned to it.

        A key that the schema no longer has is taken from the newest one that had it.
        """
        newest_first = [self.schema, *reversed(self.metadata["schemas"])]
        fields = []
        for field_id in delete.raw[135]:
            found = (pruned_to(s["fields"], field_id) for s in newest_first)
            fields.append(next(f for f in found if f is not None))
        return fields

    def _deleted_keys(self, delete: File, fields: Sequence[Json]) -> set[Any]:
        data = self._open(delete)
        return {data.key(values, fields) for values in data.stored.rows}


def _equality_delete_applies(delete: File, file: File, metadata: Json) -> bool:
    if delete.content != EQUALITY_DELETES or file.sequence_number >= delete.sequence_number:
        return False
    spec = next(s for s in _specs(metadata) if s["spec-id"] == delete.spec_id)
    is_global = all(f["transform"] == "void" for f in spec["fields"])
    return is_global or _same_partition(delete, file)


def _same_partition(a: File, b: File) -> bool:
    return a.spec_id == b.spec_id and hashable(dict(a.partition)) == hashable(dict(b.partition))


# --- metadata -------------------------------------------------------------------------------------


def _metadata_file(directory: Path) -> Path:
    folder = directory / "metadata"
    names = [p for p in folder.iterdir() if re.search(r"\.metadata\.json(\.gz)?$", p.name)]

    def version(path: Path) -> int:
        match = re.match(r"v?(\d+)", path.name)
        return int(match[1]) if match else -1

    hint = folder / "version-hint.text"
    if hint.exists():
        wanted = int(hint.read_text())
        names = [p for p in names if version(p) == wanted] or names
    return max(names, key=version)


def _schema(metadata: Json, schema_id: int | None) -> Json:
    wanted = metadata.get("current-schema-id", 0) if schema_id is None else schema_id
    schemas = metadata["schemas"]
    return next(s for s in schemas if s.get("schema-id", 0) == wanted)


def _specs(metadata: Json) -> list[Json]:
    """Return the partition specs; v1's oldest form has one, whose fields may lack ids."""
    raw = metadata.get("partition-specs")
    specs = raw if raw is not None else [{"spec-id": 0, "fields": metadata["partition-spec"]}]
    return [
        {**s, "fields": [{"field-id": 1000 + i, **f} for i, f in enumerate(s["fields"])]}
        for s in specs
    ]


def _identity_values(file: File, metadata: Json) -> dict[int, Plain]:
    spec = next(s for s in _specs(metadata) if s["spec-id"] == file.spec_id)
    return {
        f["source-id"]: file.partition[f["field-id"]]
        for f in spec["fields"]
        if f["transform"] == "identity" and f["field-id"] in file.partition
    }


def _name_mapping(metadata: Json) -> list[Json]:
    text = metadata.get("properties", {}).get("schema.name-mapping.default")
    return list(json.loads(text)) if text else []
