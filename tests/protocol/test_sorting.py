from __future__ import annotations

import pytest

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.sorting import NullOrder, SortDirection, SortField, SortOrder
from floeberg.protocol.transforms import Bucket, UnknownTransform

RAW = {
    "order-id": 1,
    "fields": [
        {
            "transform": "bucket[4]",
            "source-id": 3,
            "direction": "desc",
            "null-order": "nulls-last",
        },
        {
            "transform": "zorder",
            "source-ids": [1, 2],
            "direction": "asc",
            "null-order": "nulls-first",
        },
    ],
}


def test_reads_and_writes_the_form_of_the_spec():
    order = SortOrder.from_json(RAW)

    assert order == SortOrder(
        1,
        (
            SortField((3,), Bucket(4), SortDirection.DESC, NullOrder.LAST),
            SortField((1, 2), UnknownTransform("zorder"), SortDirection.ASC, NullOrder.FIRST),
        ),
    )
    assert order.fields[0].source_id == 3
    assert not order.is_unsorted
    assert order.to_json() == RAW


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {"order-id": 1},
        {"fields": []},
        {"order-id": "x", "fields": []},
        {"order-id": 1, "fields": [5]},
        {"order-id": 1, "fields": [{"source-id": 1, "direction": "asc"}]},
        {"order-id": 1, "fields": [RAW["fields"][0] | {"direction": "up"}]},
        {"order-id": 1, "fields": [RAW["fields"][0] | {"null-order": None}]},
    ],
)
def test_refuses_another_shape(raw):
    with pytest.raises(CorruptMetadata, match="sort order"):
        SortOrder.from_json(raw)
