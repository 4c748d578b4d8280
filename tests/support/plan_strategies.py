"""Hypothesis strategies for what tickets carry: partition values, tasks, plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from floeberg.protocol.expressions.model import (
    TRUE,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Op,
)
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat, Metrics
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import FILE, POS
from floeberg.protocol.partitioning import UNPARTITIONED
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.schema import Schema
from floeberg.protocol.sorting import UNSORTED
from floeberg.protocol.storage import StorageConfig, StorageCredential
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UuidType,
    Value,
    VariantType,
)
from tests.support.planned import data_manifest, numbered_deletes, planned_files

_INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)

VALUES_BY_TYPE: dict[PrimitiveType, st.SearchStrategy[Value]] = {
    BooleanType(): st.booleans(),
    IntType(): _INT32,
    LongType(): INT64,
    FloatType(): st.floats(width=32, allow_nan=False),
    DoubleType(): st.floats(allow_nan=False),
    DecimalType(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(
        # not by arithmetic, which rounds to 28 digits
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -10))
    ),
    DateType(): st.integers(-719162, 2932896),
    TimeType(): st.integers(0, 86_399_999_999),
    TimestampType(): st.integers(-(10**16), 10**16),
    TimestampType(zoned=True, nanos=True): st.integers(-(10**18), 10**18),
    StringType(): st.text(max_size=12),
    UuidType(): st.binary(min_size=16, max_size=16),
    FixedType(3): st.binary(min_size=3, max_size=3),
    BinaryType(): st.binary(max_size=12),
}
SCHEMA = Schema(
    (
        *(NestedField(i, f"c{i}", type_) for i, type_ in enumerate(VALUES_BY_TYPE, start=1)),
        NestedField(50, "s", StructType((NestedField(51, "x", LongType(), required=True),))),
        NestedField(60, "l", ListType(61, StringType())),
    ),
    schema_id=3,
)
METADATA = TableMetadata(
    format_version=3,
    table_uuid="7e9a4c1e-7b1f-4d6e-9f4e-0a4f5d1f2b3c",
    location="s3://lake/db/orders",
    schemas=(SCHEMA,),
    current_schema_id=3,
    partition_specs=(UNPARTITIONED,),
    default_spec_id=0,
    last_partition_id=999,
    sort_orders=(UNSORTED,),
    properties={"owner": "wire"},
)

partition_values: st.SearchStrategy[Value | None] = st.one_of(
    st.none(),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(),
    *VALUES_BY_TYPE.values(),
)
partitions = st.dictionaries(st.integers(1000, 1010), partition_values, max_size=4)
locations = st.one_of(
    st.builds(
        "{}/{}.parquet".format,
        st.sampled_from(["s3://lake/db/orders/data", "file:/w/a=1%2F", "/x y"]),
        st.uuids(),
    ),
    st.text(max_size=20),
)
_keys = st.none() | st.binary(max_size=20)
_metrics = st.builds(Metrics, value_counts=st.dictionaries(st.integers(1, 5), COUNTS, max_size=2))

data_files = st.builds(
    DataFile,
    location=locations,
    format=st.sampled_from([FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC]),
    record_count=COUNTS,
    size_bytes=COUNTS,
    spec_id=st.integers(0, 3),
    partition=partitions,
    data_sequence_number=COUNTS,
    file_sequence_number=st.none() | COUNTS,
    first_row_id=st.none() | COUNTS,
    split_offsets=st.lists(COUNTS, max_size=3).map(tuple),
    sort_order_id=st.none() | st.integers(0, 3),
    key_metadata=_keys,
    metrics=_metrics,
)
splittable_files = st.builds(
    DataFile,
    location=locations,
    format=st.just(FileFormat.PARQUET),
    record_count=st.integers(0, 100),
    size_bytes=st.integers(50, 120),
    spec_id=st.just(0),
    split_offsets=st.sets(st.integers(0, 130), max_size=6).map(sorted).map(tuple),
)
delete_files = st.builds(
    DeleteFile,
    location=locations,
    content=st.sampled_from([Content.POSITION_DELETES, Content.EQUALITY_DELETES]),
    format=st.sampled_from(FileFormat),
    record_count=COUNTS,
    size_bytes=COUNTS,
    spec_id=st.integers(0, 3),
    partition=partitions,
    data_sequence_number=COUNTS,
    equality_ids=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    referenced_data_file=st.none() | locations,
    content_offset=st.none() | COUNTS,
    content_size_bytes=st.none() | COUNTS,
    key_metadata=_keys,
    metrics=_metrics,
)


@st.composite
def _predicates(draw: st.DrawFn) -> BoundExpression:
    field = draw(st.sampled_from(SCHEMA.fields))
    type_ = field.type
    if isinstance(type_, StructType | ListType | MapType | VariantType):
        return BoundNullTest(field.field_id, field.name, type_, draw(st.booleans()))
    values = VALUES_BY_TYPE[type_]
    op = draw(st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.GE, Op.IN, Op.IS_NULL, Op.NOT_NULL]))
    literals: tuple[Value, ...] = ()
    if op is Op.IN:
        # sorted, as binding leaves them; values of one type can be
        several: set[Any] = draw(st.sets(values, min_size=2, max_size=3))
        literals = tuple(sorted(several))
    elif op not in (Op.IS_NULL, Op.NOT_NULL):
        literals = (draw(values),)
    return BoundPredicate(op, field.field_id, field.name, type_, literals)


residuals: st.SearchStrategy[BoundExpression] = st.one_of(
    st.just(TRUE),
    _predicates(),
    st.lists(_predicates(), min_size=2, max_size=3).map(lambda p: BoundAnd(tuple(p))),
    st.lists(_predicates(), min_size=2, max_size=3).map(lambda p: BoundOr(tuple(p))),
)


@st.composite
def task_lists(draw: st.DrawFn, max_size: int = 5) -> tuple[FileScanTask, ...]:
    """Tasks that share files, deletes and residuals, as a plan's do."""
    files = draw(st.lists(data_files, min_size=1, max_size=3))
    deletes = draw(st.lists(delete_files, max_size=3))
    left = draw(st.lists(residuals, min_size=1, max_size=2))
    tasks = st.builds(
        FileScanTask,
        data_file=st.sampled_from(files),
        delete_files=(
            st.lists(st.sampled_from(deletes), max_size=3) if deletes else st.just([])
        ).map(tuple),
        residual=st.sampled_from(left),
        start=COUNTS,
        length=COUNTS,
    )
    return tuple(draw(st.lists(tasks, max_size=max_size)))


@st.composite
def planned_tasks(draw: st.DrawFn) -> PlannedTasks:
    """The tasks of a plan, as columns: some rows of some manifests, divided, in part."""
    left = tuple(draw(st.lists(residuals, min_size=1, max_size=2)))
    deletes = draw(st.lists(delete_files, max_size=3))
    parts = []
    for number in range(draw(st.integers(0, 3))):
        spec_id = draw(st.integers(0, 3))
        # a manifest's partitions have one schema
        kinds = draw(st.lists(st.sampled_from(list(VALUES_BY_TYPE.values())), max_size=2))
        tuples = st.fixed_dictionaries({1000 + i: st.none() | v for i, v in enumerate(kinds)})
        listed = [
            replace(file, spec_id=spec_id, partition=draw(st.just({}) | tuples))
            for file in draw(st.lists(data_files | splittable_files, min_size=1, max_size=4))
        ]
        rows = draw(st.sets(st.sampled_from(range(len(listed)))).map(sorted))
        numbers = st.sets(st.sampled_from(range(len(deletes)))) if deletes else st.just(set[int]())
        parts.append(
            planned_files(
                listed,
                rows,
                left,
                draw(
                    st.lists(
                        st.sampled_from(range(len(left))), min_size=len(rows), max_size=len(rows)
                    )
                ),
                [sorted(draw(numbers)) for _ in rows],
                data_manifest(spec_id, f"s3://lake/db/orders/m{number}.avro"),
            )
        )
    tasks = PlannedTasks(parts, numbered_deletes(deletes), draw(st.sampled_from([0, 40, 1 << 40])))
    first = draw(st.integers(0, len(tasks)))
    return tasks[first : draw(st.integers(first, len(tasks)))]


def tasks_of(tasks: PlannedTasks) -> list[FileScanTask]:
    """Return what `tasks` stands for, made without its help."""
    made = []
    deletes = [e.file for segment, rows in tasks.deletes.parts for e in segment.entries(rows)]
    files = [
        (entry.file, [deletes[n] for n in part.deletes[i]], part.residuals[part.residual_of[i]])
        for part in tasks.files
        for i, entry in enumerate(part.segment.entries(part.rows))
    ]
    for number, start, length in zip(*(column.tolist() for column in tasks.ranges), strict=True):
        file, applied, residual = files[number]
        made.append(FileScanTask(file, tuple(applied), residual, start, length))
    return made


read_plans = st.builds(
    ReadPlan,
    metadata=st.just(METADATA),
    schema_id=st.just(3),
    projection=st.just(Schema((*SCHEMA.fields[:2], FILE, POS), 3)),
    tasks=task_lists(),
    storage=st.builds(
        StorageConfig,
        st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
        st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
        # two at most: those that share their properties come back side by side
        st.lists(
            st.builds(
                StorageCredential,
                st.text(max_size=5),
                st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
            ),
            max_size=2,
        ).map(tuple),
    ),
    options=st.builds(
        ReadOptions,
        batch_size=st.none() | st.integers(1, 10**6),
        batch_bytes=st.integers(1, 10**9),
        limit=st.none() | COUNTS,
        verify_crc=st.booleans(),
        prune=st.booleans(),
    ),
)
