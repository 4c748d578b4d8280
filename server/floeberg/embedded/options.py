"""How to read, as opposed to what."""

from __future__ import annotations

from dataclasses import dataclass

from floeberg.protocol.errors import BadCommand


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Choices that change how fast and how large a scan's batches come, never which rows.

    `batch_size` is the most rows in a batch; None slices by bytes alone (about 2 MiB each). `limit`
    stops after so many rows in plan order. `verify_crc` checks the checksums of deletion vectors
    and of Parquet pages that have one. `prune` lets the filter skip row groups by their statistics,
    and the other columns of rows that it drops. `split_size` is the bytes of a task: None is the
    scan's own choice, 0 one task a file.
    `num_workers` is how many threads read, in all; rows come in plan order at any number.
    `files_at_once` is how many tasks may be open at a time (None: as many as there are threads).
    `overlap_io` lets a single reading thread work ahead of the caller by one bounded window, and
    asks an object store for the next bytes of a file, and for the next files, while some are
    decoded.
    """

    batch_size: int | None = None
    limit: int | None = None
    verify_crc: bool = True
    prune: bool = True
    split_size: int | None = None
    num_workers: int = 1
    files_at_once: int | None = None
    overlap_io: bool = True

    def __post_init__(self) -> None:
        for name, least in (
            ("batch_size", 1),
            ("limit", 0),
            ("split_size", 0),
            ("num_workers", 1),
            ("files_at_once", 1),
        ):
            value: int | None = getattr(self, name)
            if value is not None and value < least:
                raise BadCommand(f"{name} is {value}; it must be at least {least}")
