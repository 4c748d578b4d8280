"""Cut batches to a size that travels well: about 2 MiB a message is where Flight is fastest."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def slice_batch(
    batch: pa.RecordBatch, max_rows: int | None, max_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield `batch` in order, in pieces of at most `max_rows` rows and `max_bytes` bytes.

    A single row that is larger than `max_bytes` is a piece of its own. An empty batch has no
    pieces.
    """
    if batch.num_rows == 0:
        return
    pieces = -(-batch.nbytes // max_bytes) if batch.num_columns else 1
    rows = max(1, -(-batch.num_rows // max(pieces, 1)))
    if max_rows is not None:
        rows = min(rows, max_rows)
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        if piece.num_rows > 1 and piece.nbytes > 2 * max_bytes:
            # rows of very different size: an even cut is not even in bytes
            yield from slice_batch(piece, max_rows, max_bytes)
        else:
            yield piece
