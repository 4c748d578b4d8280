"""Bring batches to a size that travels well: about 2 MiB a message is where Flight is fastest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from floeberg.worker.reading.output import KeptRows, record_batch


def join_small(
    kept: Iterable[KeptRows], enough_bytes: int, enough_rows: int | None = None
) -> Iterator[KeptRows]:
    """Yield the same rows in the same order, neighbours joined until they are enough.

    A filter that keeps few rows would otherwise make many small messages.
    """
    waiting: list[KeptRows] = []
    size = count = 0
    next_row: int | None = None
    for rows in kept:
        next_row = rows.next_row
        batch = rows.batch
        if batch.num_rows:
            waiting.append(rows)
            size += batch.nbytes
            count += batch.num_rows
        if size >= enough_bytes or (enough_rows is not None and count >= enough_rows):
            yield _join(waiting, next_row)
            waiting, size, count = [], 0, 0
    if waiting:
        yield _join(waiting, next_row)


def _join(parts: list[KeptRows], next_row: int | None) -> KeptRows:
    if len(parts) == 1:
        [only] = parts
        return only if only.next_row == next_row else replace(only, next_row=next_row)
    each = [part.positions for part in parts]
    positions = lambda: np.concatenate([of_part() for of_part in each])  # noqa: E731
    batches = [part.batch for part in parts]
    if not batches[0].num_columns:
        rows = sum(batch.num_rows for batch in batches)
        return KeptRows(record_batch((), batches[0].schema, rows), positions, next_row)
    [joined] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return KeptRows(joined, positions, next_row)


def slice_batch(
    batch: pa.RecordBatch, max_rows: int | None, max_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield `batch` in order, in pieces of at most `max_rows` rows and about `max_bytes` bytes.

    Rows of very different size are cut further, down to a single row: a piece is above twice
    `max_bytes` only when it is one row. An empty batch has no pieces.
    """
    if batch.num_rows == 0:
        return
    pieces = max(1, -(-batch.nbytes // max_bytes)) if batch.num_columns else 1
    if pieces == 1 and (max_rows is None or batch.num_rows <= max_rows):
        yield batch
        return
    rows = -(-batch.num_rows // pieces)
    if max_rows is not None:
        rows = min(rows, max_rows)
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        if piece.num_rows > 1 and piece.nbytes > 2 * max_bytes:
            yield from slice_batch(piece, max_rows, max_bytes)
        else:
            yield piece
