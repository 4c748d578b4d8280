"""Open a data file or a delete file, whatever its format."""

from __future__ import annotations

from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import CorruptDataFile, CorruptTable, MissingFile, Unsupported
from floeberg.protocol.files import DataFile, DeleteFile, FileFormat
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.storage import Storage
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.avro import AvroRows
from floeberg.worker.files.footers import Footers
from floeberg.worker.files.orc import OrcRows
from floeberg.worker.files.parquet import ParquetRows, read_contents
from floeberg.worker.files.ranges import TAIL_BYTES, RangeFile, tail_range
from floeberg.worker.files.rows import StoredFile
from floeberg.worker.files.windows import Ahead

_AVRO_READ_BYTES = 8 << 20
"""What a read fetches at least of an Avro file. It is read from front to back twice, for the
headers of its blocks and for the blocks: a file of up to two such reads, which are kept, is fetched
once."""

_ORC_READ_BYTES = 1 << 20
"""What a read fetches at least of an ORC file, of whose columns few may be wanted."""


def open_rows(
    storage: Storage,
    file: DataFile | DeleteFile,
    *,
    mapping: NameMapping | None = None,
    verify_crc: bool = True,
    corrupt: type[CorruptTable] = CorruptDataFile,
    ahead: Ahead | None = None,
    footers: Footers | None = None,
) -> StoredFile:
    """Open the rows of `file`; the caller closes them.

    With `ahead`, what is far away is fetched before it is read. `footers` keeps what was read of
    Parquet files for those that are opened again, with the same `mapping` and the like. Raises
    `corrupt` when the file cannot be decoded or has not the rows that its manifest says,
    `MissingFile` when it is gone, and `Unsupported` for encrypted files.
    """
    if file.key_metadata is not None:
        raise Unsupported(
            f"{file.location} is encrypted: reading it needs the key that its key metadata names"
        )
    role = "data file" if isinstance(file, DataFile) else "delete file"
    kept = footers or Footers(LoadingCache())
    leave = None if storage.is_local(file.location) else ahead

    def open_parquet(size: int) -> StoredFile:
        source = RangeFile(storage, file.location, size, ahead=leave)
        contents = kept.get(
            file,
            size,
            storage,
            lambda: read_contents(
                source, file.location, mapping=mapping, verify_crc=verify_crc, corrupt=corrupt
            ),
        )
        return ParquetRows(source, contents)

    def open_source(size: int, least_bytes: int) -> RangeFile:
        source = RangeFile(storage, file.location, size, least_bytes, leave)
        if size <= TAIL_BYTES:
            source.fetch_tail()
        return source

    def open_with(size: int) -> StoredFile:
        match file.format:
            case FileFormat.PARQUET:
                return open_parquet(size)
            case FileFormat.AVRO:
                source = open_source(size, _AVRO_READ_BYTES)
                return AvroRows(source, file.location, mapping=mapping, corrupt=corrupt)
            case FileFormat.ORC:
                source = open_source(size, _ORC_READ_BYTES)
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


def first_range(file: DataFile | DeleteFile) -> Range | None:
    """Return what opening `file` fetches before all else, None where that is not all at once."""
    size = file.size_bytes
    if file.format is FileFormat.PUFFIN or not size:
        return None
    return tail_range(size) if file.format is FileFormat.PARQUET or size <= TAIL_BYTES else None
