"""A table's metadata: its schemas, specs and snapshots, and which of them to read.

Spec: "Table Metadata", "Point in Time Reads", Appendix C, "Table Metadata and Snapshots".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, TypeVar

from pydantic import Field, PlainValidator, ValidationError

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.civil_time import instant_text
from floeberg.protocol.document import Document, NullIsEmptyList, NullIsEmptyMap, TextMap
from floeberg.protocol.encryption import EncryptionKey
from floeberg.protocol.errors import (
    CorruptMetadata,
    NoSnapshotAsOf,
    UnknownRef,
    UnknownSnapshot,
    Unsupported,
)
from floeberg.protocol.metadata_forms import (
    check_version,
    current_form,
    read_json,
    with_v1_forms,
)
from floeberg.protocol.name_mapping import PROPERTY as NAME_MAPPING_PROPERTY
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.snapshots import (
    MAIN_BRANCH,
    MetadataLogEntry,
    RefType,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from floeberg.protocol.sorting import UNSORTED, SortOrder
from floeberg.protocol.statistics import PartitionStatisticsFile, StatisticsFile
from floeberg.protocol.types import Json, StructType
from floeberg.protocol.validation import plain_reason


def _schema(raw: Json) -> Schema:
    return raw if isinstance(raw, Schema) else Schema.from_json(raw)


def _spec(raw: Json) -> PartitionSpec:
    return raw if isinstance(raw, PartitionSpec) else PartitionSpec.from_json(raw)


def _sort_order(raw: Json) -> SortOrder:
    return raw if isinstance(raw, SortOrder) else SortOrder.from_json(raw)


_FORMS_KEPT = 8

T = TypeVar("T")
_List = Annotated[tuple[T, ...], NullIsEmptyList]


class TableMetadata(Document):
    """What one `*.metadata.json` says, in the form of v2 and v3 whatever its version.

    `location` and `table_uuid` may be None: v4 leaves the first out, v1 may leave out the second.
    `last_updated_ms` and `last_column_id` are 0 where a writer forgot them; no reader needs them.
    `current_snapshot_id` is None for a table never written to. `refs` holds what the file holds;
    `main` may be missing there, ask `snapshot_for_ref`. The repr is short and shows no property
    and no key.
    """

    format_version: int
    table_uuid: str | None = None
    location: str | None = None
    last_sequence_number: int = 0
    last_updated_ms: int = 0
    last_column_id: int = 0
    schemas: tuple[Annotated[Schema, PlainValidator(_schema)], ...]
    current_schema_id: int
    partition_specs: tuple[Annotated[PartitionSpec, PlainValidator(_spec)], ...]
    default_spec_id: int
    last_partition_id: int
    properties: TextMap = Field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: _List[Snapshot] = ()
    snapshot_log: _List[SnapshotLogEntry] = ()
    metadata_log: _List[MetadataLogEntry] = ()
    sort_orders: tuple[Annotated[SortOrder, PlainValidator(_sort_order)], ...] = (UNSORTED,)
    default_sort_order_id: int = 0
    refs: Annotated[dict[str, SnapshotRef], NullIsEmptyMap] = Field(default_factory=dict)
    statistics: _List[StatisticsFile] = ()
    partition_statistics: _List[PartitionStatisticsFile] = ()
    next_row_id: int | None = None
    encryption_keys: _List[EncryptionKey] = ()

    # --- reading and writing JSON ----------------------------------------------------------------

    @classmethod
    def parse(cls, raw: bytes | str, where: str) -> TableMetadata:
        """Return the metadata that the file `where` holds, gzipped or not.

        Raises `UnsupportedVersion` for a format version above 3, and `CorruptMetadata` for what
        is not table metadata or names a current schema, default spec or current snapshot that it
        does not have.
        """
        document = read_json(raw, where)
        check_version(document, where)
        form = current_form(document, where)
        try:
            metadata = cls.model_validate(form, by_alias=True, by_name=False)
        except ValidationError as exc:
            raise CorruptMetadata(f"{where}: {_explain(exc)}") from exc
        except CorruptMetadata as exc:
            raise CorruptMetadata(f"{where}: {exc}") from exc
        except Unsupported as exc:
            raise Unsupported(f"{where}: {exc}") from exc
        except RecursionError as exc:
            raise CorruptMetadata(f"{where}: a schema is nested too deeply") from exc
        metadata._check(where)
        return metadata

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form; for a v1 table with the singular forms too, as v1 requires."""
        out = super().to_json()
        return with_v1_forms(out) if self.format_version == 1 else out

    @cached_property
    def json_text(self) -> bytes:
        """The JSON form as compact text, made once."""
        return dump_json(self.to_json())

    def _check(self, where: str) -> None:
        _check_ids("snapshot", ((s.snapshot_id, s) for s in self.snapshots), where)
        _check_ids("schema", ((s.schema_id, s) for s in self.schemas), where)
        _check_ids("partition spec", ((s.spec_id, s) for s in self.partition_specs), where)
        _check_ids("sort order", ((o.order_id, o) for o in self.sort_orders), where)
        if self.current_schema_id not in {s.schema_id for s in self.schemas}:
            raise CorruptMetadata(
                f"{where}: current-schema-id {self.current_schema_id} is not among the schemas"
            )
        if self.default_spec_id not in {s.spec_id for s in self.partition_specs}:
            raise CorruptMetadata(
                f"{where}: default-spec-id {self.default_spec_id} is not among the partition specs"
            )
        current = self.current_snapshot_id
        if current is not None and self._snapshot(current) is None:
            raise CorruptMetadata(
                f"{where}: current-snapshot-id {current} is not among the snapshots"
            )
        main = self.refs.get(MAIN_BRANCH)
        if main is not None and main.snapshot_id != current:
            raise CorruptMetadata(
                f"{where}: branch main is at snapshot {main.snapshot_id}, but"
                f" current-snapshot-id is {current}"
            )

    def __repr__(self) -> str:
        return (
            f"TableMetadata(format_version={self.format_version}, table_uuid={self.table_uuid!r},"
            f" location={self.location!r}, current_snapshot_id={self.current_snapshot_id})"
        )

    __str__ = __repr__

    # --- schemas, specs, sort orders -------------------------------------------------------------

    # pydantic's deprecated class method of this name is of no use for frozen metadata
    def schema(self) -> Schema:  # type: ignore[override]
        """Return the table's current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema with that id. Raises `CorruptMetadata`: the table itself names it."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise CorruptMetadata(f"{self._name} has no schema with id {schema_id}")

    def schema_for_snapshot(self, snapshot: Snapshot) -> Schema:
        """Return the schema recorded with `snapshot`, or the current one where none is."""
        return (
            self.schema() if snapshot.schema_id is None else self.schema_by_id(snapshot.schema_id)
        )

    def spec(self) -> PartitionSpec:
        """Return the spec that new files are written with."""
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Return the spec with that id. Raises `CorruptMetadata`: the table itself names it."""
        for spec in self.partition_specs:
            if spec.spec_id == spec_id:
                return spec
        raise CorruptMetadata(f"{self._name} has no partition spec with id {spec_id}")

    def partition_type(self, spec: PartitionSpec, schema: Schema | None = None) -> StructType:
        """Return the type of partition tuples of `spec`, see `PartitionSpec.partition_type`.

        `schema`, by default the current one, comes first. Where it lacks a source column, which was
        dropped or added since, the newest schema that has it tells.
        """
        newest_first = sorted(self.schemas, key=lambda s: s.schema_id, reverse=True)
        return spec.partition_type(schema or self.schema(), *newest_first)

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """Return the sort order with that id; 0 is always the unsorted one."""
        for order in self.sort_orders:
            if order.order_id == order_id:
                return order
        if order_id == UNSORTED.order_id:
            return UNSORTED
        raise CorruptMetadata(f"{self._name} has no sort order with id {order_id}")

    def name_mapping(self) -> NameMapping | None:
        """Return the mapping for files without field ids, where the table has one."""
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        where = f"{self._name}, {NAME_MAPPING_PROPERTY}"
        return None if text is None else NameMapping.parse(text, where)

    @property
    def _name(self) -> str:
        return f"table {self.location or self.table_uuid}"

    # --- snapshots -------------------------------------------------------------------------------

    def _snapshot(self, snapshot_id: int) -> Snapshot | None:
        return next((s for s in self.snapshots if s.snapshot_id == snapshot_id), None)

    def current_snapshot(self) -> Snapshot | None:
        """Return the table as it is now, or None for a table never written to."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id(self.current_snapshot_id)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot:
        """Return the snapshot with that id. Raises `UnknownSnapshot`."""
        snapshot = self._snapshot(snapshot_id)
        if snapshot is None:
            newest_last = sorted(self.snapshots, key=lambda s: s.timestamp_ms)
            raise UnknownSnapshot(snapshot_id, [s.snapshot_id for s in newest_last])
        return snapshot

    def ref_by_name(self, name: str) -> SnapshotRef | None:
        """Return the branch or tag called `name`; None is `main` of a table never written to.

        `branch=x` and `tag=x` mean the ref `x` if it is of that kind, else a ref with that whole
        name. `main` is there even where the file does not list it. Raises `UnknownRef`.
        """
        refs = dict(self.refs)
        if MAIN_BRANCH not in refs and self.current_snapshot_id is not None:
            refs[MAIN_BRANCH] = SnapshotRef(
                snapshot_id=self.current_snapshot_id, type=RefType.BRANCH
            )
        kind, separator, bare = name.partition("=")
        wanted = {f"{k}=": k for k in RefType}.get(kind + separator)
        if wanted is not None:
            ref = refs.get(bare)
            if ref is not None and ref.type is wanted:
                return ref
        if name in refs:
            return refs[name]
        branch = bare if wanted is RefType.BRANCH else name
        if branch == MAIN_BRANCH and self.current_snapshot_id is None:
            return None
        if wanted is None:
            raise UnknownRef(name, sorted(refs))
        raise UnknownRef(bare, sorted(n for n, r in refs.items() if r.type is wanted), wanted)

    def snapshot_for_ref(self, name: str) -> Snapshot | None:
        """Return the snapshot that a branch or tag points at, see `ref_by_name`."""
        ref = self.ref_by_name(name)
        if ref is None:
            return None
        snapshot = self._snapshot(ref.snapshot_id)
        if snapshot is None:
            raise CorruptMetadata(
                f"{self._name}: {ref.type} {name!r} is at snapshot {ref.snapshot_id}, which is"
                " not among the snapshots"
            )
        return snapshot

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """Return the snapshot that was current at `timestamp_ms`.

        The snapshot log says which it was. Without a log it is the youngest of the current
        snapshot and its ancestors that is not younger than the time; a staged or another branch's
        snapshot never is. Raises `NoSnapshotAsOf` for a time before the first.
        """
        if not self.snapshot_log:
            return self._ancestor_as_of(timestamp_ms)
        was_current: int | None = None
        for entry in self.snapshot_log:
            if entry.timestamp_ms <= timestamp_ms:
                was_current = entry.snapshot_id
        if was_current is None:
            first = min(entry.timestamp_ms for entry in self.snapshot_log)
            raise NoSnapshotAsOf(timestamp_ms, f"the snapshot log begins at {instant_text(first)}")
        snapshot = self._snapshot(was_current)
        if snapshot is None:
            raise NoSnapshotAsOf(
                timestamp_ms, f"snapshot {was_current}, current then, has been expired"
            )
        return snapshot

    def _ancestor_as_of(self, timestamp_ms: int) -> Snapshot:
        oldest: Snapshot | None = None
        for snapshot in self._current_and_ancestors():
            if snapshot.timestamp_ms <= timestamp_ms:
                return snapshot
            oldest = snapshot
        raise NoSnapshotAsOf(
            timestamp_ms,
            "the table has no snapshots"
            if oldest is None
            else "without a snapshot log, the oldest snapshot known to have been current is"
            f" {oldest.snapshot_id} of {instant_text(oldest.timestamp_ms)}",
        )

    def _current_and_ancestors(self) -> Iterator[Snapshot]:
        by_id = {s.snapshot_id: s for s in self.snapshots}
        next_id = self.current_snapshot_id
        while next_id is not None and (snapshot := by_id.pop(next_id, None)) is not None:
            yield snapshot
            next_id = snapshot.parent_snapshot_id

    # --- what a reader needs ---------------------------------------------------------------------

    def for_reading(self, snapshot: Snapshot | None = None) -> TableMetadata:
        """Return what it takes to read `snapshot` (by default the current one), without the past.

        It keeps the schemas, specs, sort orders and properties, the one snapshot, as the current
        one, and the refs that point at it. Other snapshots, the logs, statistics, encryption keys
        and unknown keys are left out. It is table metadata itself: `parse` takes it back.
        """
        chosen = snapshot or self.current_snapshot()
        chosen_id = None if chosen is None else chosen.snapshot_id
        known = self.forms_for_reading.get(chosen_id)
        if known is not None:
            return known
        form = TableMetadata(
            format_version=self.format_version,
            table_uuid=self.table_uuid,
            location=self.location,
            last_sequence_number=self.last_sequence_number,
            last_updated_ms=self.last_updated_ms,
            last_column_id=self.last_column_id,
            schemas=self.schemas,
            current_schema_id=self.current_schema_id,
            partition_specs=self.partition_specs,
            default_spec_id=self.default_spec_id,
            last_partition_id=self.last_partition_id,
            properties=self.properties,
            current_snapshot_id=chosen_id,
            snapshots=() if chosen is None else (chosen,),
            sort_orders=self.sort_orders,
            default_sort_order_id=self.default_sort_order_id,
            refs={n: r for n, r in self.refs.items() if r.snapshot_id == chosen_id},
            next_row_id=self.next_row_id,
        )
        if len(self.forms_for_reading) == _FORMS_KEPT:
            self.forms_for_reading.clear()
        self.forms_for_reading[chosen_id] = form
        return form

    @cached_property
    def forms_for_reading(self) -> dict[int | None, TableMetadata]:
        """What `for_reading` returned last, by the snapshot: every plan asks for it."""
        return {}


def _check_ids(kind: str, items: Iterable[tuple[int, object]], where: str) -> None:
    """Refuse two different things under one id: whichever was taken, it might be the wrong one."""
    seen: dict[int, object] = {}
    for number, item in items:
        if seen.setdefault(number, item) != item:
            raise CorruptMetadata(f"{where} has two {kind}s with the id {number}")


def _explain(error: ValidationError) -> str:
    """Say what is wrong and where, without the values: properties may be secret."""
    found = error.errors(include_url=False)
    shown = (f"{'.'.join(str(p) for p in e['loc'])}: {plain_reason(e)}" for e in found[:3])
    return "; ".join(shown) + (f" (and {len(found) - 3} more)" if len(found) > 3 else "")
