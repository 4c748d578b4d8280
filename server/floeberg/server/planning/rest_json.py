"""A plan as JSON, in the shape of the REST catalog's ScanTasks.

`file-scan-tasks` refer to `delete-files` by index. Bounds are the hexadecimal of Appendix D's
bytes, as Iceberg's own library writes and reads them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.expressions.json_form import bound_to_named_json
from floeberg.protocol.files import Content, DataFile, DeleteFile, Metrics
from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import Json, NestedField, Type, UnknownType, Value
from floeberg.server.planning.plan import Plan
from floeberg.server.planning.rest_filter import rest_bytes, rest_filter, rest_value

V = TypeVar("V")


def rest_json(plan: Plan) -> Json:
    """Return `plan` in REST's shape; deletes that several tasks share are listed once.

    Beside what the REST document names, a task has its byte range, its spec, its data file's
    sequence number, and the residual in floeberg's own form (`["true"]` when nothing is left).
    """
    writer = _Writer(plan.scan)
    return writer.scan_tasks([_own_task(writer, task) for task in plan.tasks])


def rest_scan_tasks(
    scan: ResolvedScan,
    tasks: Sequence[FileScanTask],
    stats: Container[int],
    *,
    with_null_partitions: bool = True,
) -> dict[str, Json]:
    """Return whole files as REST's ScanTasks, with no more than the REST document names.

    `stats` are the ids of the columns whose statistics are wanted. `with_null_partitions` False
    leaves partition tuples that hold a null empty, for clients that can't read null there.
    """
    writer = _Writer(scan, stats, with_null_partitions=with_null_partitions)
    return writer.scan_tasks([writer.task(task) for task in tasks])


def _own_task(writer: _Writer, task: FileScanTask) -> dict[str, Json]:
    data = task.data_file
    return writer.task(task) | {
        "residual": bound_to_named_json(task.residual, writer.scan.schema),
        "start": task.start,
        "length": task.size_bytes,
        "spec-id": data.spec_id,
        "data-sequence-number": data.data_sequence_number,
    }


class _Writer:
    """Writes tasks, and collects their deletes. `stats` None is every column's."""

    def __init__(
        self,
        scan: ResolvedScan,
        stats: Container[int] | None = None,
        *,
        with_null_partitions: bool = True,
    ) -> None:
        self.scan = scan
        self._stats = stats
        self._with_null_partitions = with_null_partitions
        self._deletes: list[Json] = []
        self._places: dict[tuple[str, int | None], int] = {}
        self._types: dict[int, tuple[NestedField, ...]] = {}

    def scan_tasks(self, written: list[dict[str, Json]]) -> dict[str, Json]:
        return {"delete-files": self._deletes, "file-scan-tasks": written}

    def task(self, task: FileScanTask) -> dict[str, Json]:
        return {
            "data-file": self._data_file(task.data_file),
            "delete-file-references": [self._reference(d) for d in task.delete_files],
            "residual-filter": rest_filter(task.residual, self.scan.schema),
        }

    def _reference(self, deletes: DeleteFile) -> int:
        place = deletes.location, deletes.content_offset
        if place not in self._places:
            self._places[place] = len(self._deletes)
            self._deletes.append(self._delete_file(deletes))
        return self._places[place]

    def _data_file(self, file: DataFile) -> Json:
        out = self._file(file, "data")
        if file.split_offsets:
            out["split-offsets"] = list(file.split_offsets)
        if file.sort_order_id is not None:
            out["sort-order-id"] = file.sort_order_id
        if file.first_row_id is not None:
            out["first-row-id"] = file.first_row_id
        return out | self._metrics(file.metrics)

    def _delete_file(self, file: DeleteFile) -> Json:
        if file.content is Content.EQUALITY_DELETES:
            out = self._file(file, "equality-deletes")
            out["equality-ids"] = list(file.equality_ids)
            return out
        out = self._file(file, "position-deletes")
        if file.referenced_data_file is not None:
            out["referenced-data-file"] = file.referenced_data_file
        if file.content_offset is not None and file.content_size_bytes is not None:
            out["content-offset"] = file.content_offset
            out["content-size-in-bytes"] = file.content_size_bytes
        return out

    def _file(self, file: DataFile | DeleteFile, content: str) -> dict[str, Json]:
        out: dict[str, Json] = {
            "content": content,
            "file-path": file.location,
            "file-format": str(file.format),
            "spec-id": file.spec_id,
            "partition": self._partition(file),
            "file-size-in-bytes": file.size_bytes,
            "record-count": file.record_count,
        }
        if file.key_metadata is not None:
            out["key-metadata"] = rest_bytes(file.key_metadata)
        return out

    def _partition(self, file: DataFile | DeleteFile) -> list[Json]:
        try:
            values = [
                _partition_value(field.type, file.partition.get(field.field_id))
                for field in self._partition_fields(file.spec_id)
            ]
            return values if self._with_null_partitions or None not in values else []
        except ValueError as exc:
            raise CorruptManifest(
                f"a partition value of {file.location} does not fit partition spec {file.spec_id}:"
                f" {exc}"
            ) from exc

    def _partition_fields(self, spec_id: int) -> tuple[NestedField, ...]:
        found = self._types.get(spec_id)
        if found is None:
            metadata = self.scan.metadata
            spec = metadata.spec_by_id(spec_id)
            found = self._types[spec_id] = metadata.partition_type(spec, self.scan.schema).fields
        return found

    def _metrics(self, metrics: Metrics) -> dict[str, Json]:
        counts: Mapping[str, Mapping[int, int]] = {
            "column-sizes": metrics.column_sizes,
            "value-counts": metrics.value_counts,
            "null-value-counts": metrics.null_value_counts,
            "nan-value-counts": metrics.nan_value_counts,
        }
        bounds: Mapping[str, Mapping[int, bytes]] = {
            "lower-bounds": metrics.lower_bounds,
            "upper-bounds": metrics.upper_bounds,
        }
        out: dict[str, Json] = {}
        for name, by_id in counts.items():
            if wanted := self._wanted(by_id):
                out[name] = {"keys": list(wanted), "values": list(wanted.values())}
        for name, by_column in bounds.items():
            if found := self._wanted(by_column):
                values = [rest_bytes(raw) for raw in found.values()]
                out[name] = {"keys": list(found), "values": values}
        return out

    def _wanted(self, by_id: Mapping[int, V]) -> Mapping[int, V]:
        stats = self._stats
        return by_id if stats is None else {k: v for k, v in by_id.items() if k in stats}


def _partition_value(type_: Type, value: Value | None) -> Json:
    if value is None or not isinstance(type_, UnknownType):
        return rest_value(type_, value)
    # of a transform that is not known: its own kind of JSON
    if isinstance(value, bytes):
        return rest_bytes(value)
    return str(value) if isinstance(value, Decimal) else value
