"""Hash and compare rows of key columns, all rows of a chunk at once.

Two rows are the same key when all their columns are: a null is a null and NaN is NaN, while 0.0 and
-0.0 differ. Equal keys have equal hashes; what hashes alike is compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from floeberg.worker.arrow import ArrowArray

Hashes = npt.NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio's bits, odd
_NULL = np.uint64(0x5851F42D4C957F2D)


def hash_rows(columns: Sequence[ArrowArray]) -> Hashes:
    """Return one hash for each row of `columns`; there is one at least, and no dictionary."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashes = _mixed(hashes * _MIX ^ _hash_column(column))
    return hashes


def _mixed(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(32))) * _MIX
    mixed: Hashes = hashes ^ (hashes >> np.uint64(29))
    return mixed


def _hash_column(column: ArrowArray) -> Hashes:
    if pat.is_null(column.type):
        return np.full(len(column), _NULL)
    hashes = _hash_bytes(column) if _is_bytes(column) else _hash_words(_words(column))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _is_bytes(column: ArrowArray) -> bool:
    return pat.is_string(column.type) or pat.is_binary(column.type)


def _words(column: ArrowArray) -> Hashes:
    """Return values of fixed width as 64-bit words, shape (rows, words); of nulls, anything."""
    type_ = column.type
    if pat.is_boolean(type_):
        return _words(column.cast(pa.uint8()))
    if pat.is_floating(type_):
        is_nan = pc.is_nan(column)
        column = pc.if_else(is_nan, pa.scalar(float("nan"), type_), column)
    width = type_.bit_width // 8
    raw = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    values = raw[column.offset * width : (column.offset + len(column)) * width]
    padded = np.zeros((len(column), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = values.reshape(len(column), width)
    return padded.view(np.uint64)


def _hash_words(words: Hashes) -> Hashes:
    hashes = np.zeros(len(words), dtype=np.uint64)
    for i in range(words.shape[1]):
        hashes = _mixed(hashes ^ words[:, i])
    return hashes


def _hash_bytes(column: ArrowArray) -> Hashes:
    """Return a hash of each text, eight bytes of all texts at a time."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    data = column.buffers()[2]
    content = bytes(data[offsets[0] : offsets[-1]]) if data is not None else b""
    # a word from every byte on, also from the last
    word_at: Hashes = np.ndarray(
        len(content) + 1, dtype="<u8", buffer=content + bytes(8), strides=(1,)
    )
    hashes = lengths.astype(np.uint64)
    rows = np.flatnonzero(lengths)
    done = 0
    while len(rows):
        rest = np.minimum(lengths[rows] - done, 8)
        words = word_at[starts[rows] + done] & _FIRST_BYTES[rest]
        hashes[rows] = _mixed(hashes[rows] ^ words)
        done += 8
        rows = rows[lengths[rows] > done]
    return _mixed(hashes)


_FIRST_BYTES: Hashes = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


def same_rows(left: Sequence[ArrowArray], right: Sequence[ArrowArray]) -> npt.NDArray[np.bool_]:
    """Return in which rows `left` and `right`, of the same types and lengths, are the same key."""
    same = np.ones(len(left[0]), dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= _same_values(a, b)
    return same


def _same_values(a: ArrowArray, b: ArrowArray) -> npt.NDArray[np.bool_]:
    both_null = _both(a.is_null(), b.is_null())
    if pat.is_null(a.type):
        return both_null
    if _is_bytes(a):
        equal: ArrowArray = pc.equal(a, b)
        same = equal.fill_null(False).to_numpy(zero_copy_only=False)
    else:
        same = (_words(a) == _words(b)).all(axis=1)
        same &= _both(a.is_valid(), b.is_valid())
    found: npt.NDArray[np.bool_] = same | both_null
    return found


def _both(a: ArrowArray, b: ArrowArray) -> npt.NDArray[np.bool_]:
    both: ArrowArray = pc.and_(a, b)
    found: npt.NDArray[np.bool_] = both.to_numpy(zero_copy_only=False)
    return found
