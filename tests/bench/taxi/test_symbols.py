from __future__ import annotations

import pytest

from tests.bench.taxi.symbols import (
    COPYING,
    DECODING,
    DUCKDB,
    FILTERING,
    GRPC,
    KERNEL,
    KINDS,
    OTHER,
    PYTHON,
    TO_DUCKDB,
    counted,
    kind_of,
    shares,
)

DUCKDB_LIBRARY = "_duckdb.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("library", "function", "kind"),
    [
        ("libparquet.so.2600", "parquet::LevelDecoder::Decode", DECODING),
        ("libarrow.so.2600", "arrow::internal::bpacking::unpack_avx512<unsigned int>", DECODING),
        ("libarrow_compute.so.2600", "arrow::compute::internal::(anonymous)::Filter", FILTERING),
        ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "arr_bincount", FILTERING),
        (DUCKDB_LIBRARY, "duckdb::ArrowToDuckDBConversion::SetValidityMask", TO_DUCKDB),
        (DUCKDB_LIBRARY, "0x000000000379e025", DUCKDB),
        ("libarrow_flight.so.2600", "grpc_core::CallData::SendMessage", GRPC),
        ("libc.so.6", "__memmove_avx512_unaligned_erms", COPYING),
        ("libarrow.so.2600", "je_arrow_private_je_eset_insert", COPYING),
        ("[kernel.kallsyms]", "_copy_from_iter", KERNEL),
        ("lib.cpython-311-x86_64-linux-gnu.so", "__Pyx_Generator_Next", PYTHON),
        ("libarrow.so.2600", "arrow::Status::CopyFrom", OTHER),
    ],
)
def test_a_function_has_a_kind(library: str, function: str, kind: str) -> None:
    assert kind_of(library, function) == kind


def test_a_report_is_counted_by_kinds() -> None:
    report = """
# Samples: 4  of event 'cpu-clock'
 75.00% ; 3          ;libpython3.11.so.1.0    ;[.] _PyEval_EvalFrameDefault
 25.00% ; 1          ;[kernel.kallsyms]       ;[k] exc_page_fault
"""

    found = counted(report.splitlines())

    assert shares(found) == {**dict.fromkeys(KINDS, 0.0), PYTHON: 0.75, KERNEL: 0.25}
    assert shares({}) == {}
