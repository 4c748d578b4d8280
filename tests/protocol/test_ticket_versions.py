"""Tickets that earlier versions sealed still open: a fleet is upgraded while tickets are out.

The files in `data/` are never changed after a release. A new version of the layout adds one.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from floeberg.protocol.expressions.model import BoundAnd, BoundPredicate, Op
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.plans import ReadOptions, ReadPlan, ResumePlace
from floeberg.protocol.schema import Schema
from floeberg.protocol.sealing import Key, Keyring
from floeberg.protocol.storage import CredentialRenewal, StorageConfig, StorageCredential
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.tickets import OpenTicket, open_ticket
from floeberg.protocol.types import DecimalType, LongType
from tests.support.plan_strategies import METADATA, SCHEMA

DATA = Path(__file__).parent / "data"
KEYRING = Keyring((Key("2026-01", bytes(range(32))),))
EXPIRY = 1_800_000_000_000

A = DataFile(
    "s3://lake/db/orders/data/day=1/a.parquet",
    FileFormat.PARQUET,
    1000,
    50_000,
    1,
    {1000: 1, 1001: None, 1002: Decimal("1.50"), 1003: b"\x00\xff", 1004: "ü", 1005: True},
    data_sequence_number=4,
    file_sequence_number=5,
    first_row_id=7000,
    split_offsets=(4, 25_000),
    sort_order_id=1,
    key_metadata=b"key of a",
)
B = DataFile("file:/w/b.avro", FileFormat.AVRO, 10, 500, 0, {1000: -0.0, 1001: float("inf")})
VECTOR = DeleteFile(
    "s3://lake/db/orders/data/v.puffin",
    Content.POSITION_DELETES,
    FileFormat.PUFFIN,
    3,
    900,
    1,
    {1000: 1},
    data_sequence_number=6,
    referenced_data_file=A.location,
    content_offset=4,
    content_size_bytes=44,
)
EQUALITY = DeleteFile(
    "s3://lake/db/orders/data/e.parquet",
    Content.EQUALITY_DELETES,
    FileFormat.PARQUET,
    2,
    800,
    0,
    data_sequence_number=7,
    equality_ids=(3, 11),
)
RESIDUAL = BoundAnd(
    (
        BoundPredicate(Op.GT, 3, "c3", LongType(), (10,)),
        BoundPredicate(Op.NE, 6, "c6", DecimalType(38, 10), (Decimal("2.5000000000"),)),
    )
)
PLAN = ReadPlan(
    METADATA,
    SCHEMA.schema_id,
    Schema(SCHEMA.fields[2:4], SCHEMA.schema_id),
    (
        FileScanTask(A, (VECTOR, EQUALITY), RESIDUAL, 0, 25_000),
        FileScanTask(A, (VECTOR, EQUALITY), RESIDUAL, 25_000, 25_000),
        FileScanTask(B),
    ),
    StorageConfig({"s3.endpoint": "http://s3"}, {"s3://lake": "/copy"}),
    ReadOptions(batch_size=1024, limit=5, prune=False),
)


LENT = StorageConfig(
    {"s3.endpoint": "http://s3"},
    credentials=(
        StorageCredential("s3://lake/db/orders/data/", {"s3.session-token": "a"}),
        StorageCredential("s3://lake/db/orders/deletes/", {"s3.session-token": "a"}),
        StorageCredential("s3://lake/", {"s3.session-token": "b"}),
    ),
    renewal=CredentialRenewal("lake.db.orders", b"\x01\x02"),
)


def test_a_ticket_of_version_1_opens():
    raw = base64.b64decode((DATA / "ticket-v1.b64").read_text())

    ticket = open_ticket(raw, KEYRING, now_ms=EXPIRY - 1)

    # from before tickets said so, a principal that was named was bound
    assert ticket == OpenTicket(PLAN, "ann", EXPIRY, ResumePlace(1, 640), is_bound=True)
    assert repr(tuple(ticket.plan.tasks)) == repr(PLAN.tasks)


def test_a_ticket_of_version_1_with_lent_credentials_opens():
    raw = base64.b64decode((DATA / "ticket-v1-lent.b64").read_text())

    ticket = open_ticket(raw, KEYRING, now_ms=EXPIRY - 1)

    assert ticket.plan == replace(PLAN, storage=LENT)
    assert ticket.principal is None
