"""Open a data file or a delete file, whatever its format."""

from __future__ import annotations

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, MissingFile, Unsupported
from floeberg.protocol.files import DataFile, DeleteFile, FileFormat
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.storage import Storage
from floeberg.worker.files.avro import AvroRows
from floeberg.worker.files.orc import OrcRows
from floeberg.worker.files.parquet import ParquetRows
from floeberg.worker.files.ranges import TAIL_BYTES, RangeFile
from floeberg.worker.files.rows import StoredFile
from floeberg.worker.files.windows import Ahead

_READ_AHEAD_BYTES = 1 << 20
"""What a read fetches at least of Avro and ORC files, which are read from front to back."""


def open_rows(
    storage: Storage,
    file: DataFile | DeleteFile,
    *,
    mapping: NameMapping | None = None,
    verify_crc: bool = True,
    corrupt: type[CorruptTable] = CorruptDataFile,
    ahead: Ahead | None = None,
) -> StoredFile:
    """Open the rows of `file`; the caller closes them.

    With `ahead`, what is far away is fetched before it is read. Raises `corrupt` when the file
    cannot be decoded or has not the rows that its manifest says, `MissingFile` when it is gone, and
    `Unsupported` for encrypted files.
    """
    if file.key_metadata is not None:
        raise Unsupported(
            f"{file.location} is encrypted: reading it needs the key that its key metadata names"
        )
    role = "data file" if isinstance(file, DataFile) else "delete file"

    def open_with(size: int) -> StoredFile:
        is_parquet = file.format is FileFormat.PARQUET
        source = RangeFile(
            storage,
            file.location,
            size,
            read_ahead=0 if is_parquet else _READ_AHEAD_BYTES,
            ahead=None if storage.is_local(file.location) else ahead,
        )
        if is_parquet or size <= TAIL_BYTES:
            source.fetch_tail()
        match file.format:
            case FileFormat.PARQUET:
                return ParquetRows(
                    source, file.location, mapping=mapping, verify_crc=verify_crc, corrupt=corrupt
                )
            case FileFormat.AVRO:
                return AvroRows(source, file.location, mapping=mapping, corrupt=corrupt)
            case FileFormat.ORC:
                return OrcRows(source, file.location, mapping=mapping, corrupt=corrupt)
            case FileFormat.PUFFIN:
                raise corrupt(f"the {role} {file.location} is a Puffin file, which holds no rows")

    try:
        try:
            rows = open_with(file.size_bytes)
        except corrupt:
            # files that were copied or rewritten by hand have other sizes than their manifests say
            size = storage.size(file.location)
            if size == file.size_bytes:
                raise
            rows = open_with(size)
    except MissingFile as exc:
        raise MissingFile(file.location, role) from exc
    if rows.num_rows != file.record_count:
        raise corrupt(
            f"the {role} {file.location} holds {rows.num_rows} rows;"
            f" its manifest says {file.record_count}"
        )
    return rows
