"""What processors were busy with, by the function and the library that they were in: as lines of
`perf report`, `share;samples;library;[.] function`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

DECOMPRESSING = "decompress"
DECODING = "decode"
FILTERING = "filter, fold"
TO_DUCKDB = "Arrow → DuckDB"
DUCKDB = "DuckDB"
GRPC = "gRPC, IPC"
PYTHON = "Python"
COPYING = "memory"
KERNEL = "kernel"
OTHER = "other"

KINDS = (
    DECOMPRESSING,
    DECODING,
    FILTERING,
    TO_DUCKDB,
    DUCKDB,
    GRPC,
    PYTHON,
    COPYING,
    KERNEL,
    OTHER,
)
"""`memory` is copies and allocation, whoever asked for them; `kernel` is sockets, files and page
faults. What of DuckDB takes in Arrow's batches is told apart as far as functions have names."""

# patterns for `library function`; the first that is found says the kind
_PATTERNS: Sequence[tuple[str, re.Pattern[str]]] = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        (KERNEL, r"^\[|\.ko |^vmlinux"),
        (DECOMPRESSING, r"ZSTD_|HUF_|FSE_|snappy|LZ4_|XXH"),
        (
            COPYING,
            r"mem(cpy|move|set)|malloc|calloc|_int_free|cfree| je_| mi_|operator (new|delete)",
        ),
        (TO_DUCKDB, r"_duckdb.*Arrow"),
        (DUCKDB, r"_duckdb"),
        (DECODING, r"^libparquet|bpacking|Unpacker|RleBitPacked|DictionaryConverter|_parquet\."),
        (GRPC, r"arrow::ipc|^libarrow_flight|^libarrow_python_flight|^_flight\.|grpc|flatbuf"),
        (FILTERING, r"^libarrow_compute|arrow::compute|^_compute\.|_multiarray_umath|_umath"),
        (PYTHON, r"^libpython|^python|\.cpython-|^libarrow_python|\.abi3\."),
    )
]


def kind_of(library: str, function: str) -> str:
    """Return what a function is for.

    >>> kind_of("libarrow.so.2600", "HUF_decompress4X1_usingDTable_internal_fast_c_loop")
    'decompress'
    >>> kind_of("libpython3.11.so.1.0", "_PyEval_EvalFrameDefault")
    'Python'
    """
    text = f"{library} {function}"
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), OTHER)


def counted(lines: Iterable[str]) -> Counter[str]:
    """Return how many samples there are of each kind in a report; comments are passed over."""
    found: Counter[str] = Counter()
    for line in lines:
        if line.startswith("#") or line.count(";") < 3:
            continue
        _, samples, library, function = (part.strip() for part in line.split(";", 3))
        # a function comes after what tells the kernel's from others
        found[kind_of(library, function.partition(" ")[2])] += int(samples)
    return found


def shares(found: Mapping[str, int]) -> dict[str, float]:
    """Return which part of all samples each kind is; nothing where there are none."""
    total = sum(found.values())
    return {kind: found.get(kind, 0) / total for kind in KINDS} if total else {}
