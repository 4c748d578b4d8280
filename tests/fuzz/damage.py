"""Damage one file of a table at a time, and read: all the rows come, or an error that names a file.

    python -m tests.fuzz.damage --examples 2000 --seed 7

Every kind of file is cut, flipped, overwritten and lengthened: metadata, manifest lists, manifests,
data files, delete files and Puffin files, of tables of all formats. No damage may end the process,
hang it, or make the answer shorter. Where a checksum covers the bytes, deleted rows do not come
back either. Blocks of Avro and stripes of ORC have none: there another value is no finding.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pyarrow as pa

from floeberg.embedded import open_table
from floeberg.protocol.errors import FloebergError
from tests.support.lake import FileLayout, TableWriter, WrittenFile, required, schema

ROWS = 400
PEOPLE = schema(
    {
        "id": required("long"),
        "name": "string",
        "height": "double",
        "born": "date",
        "tags": {"type": "list", "element": "string", "element-required": False},
    }
)
MAPPING = (
    '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]},'
    ' {"field-id": 3, "names": ["height"]}, {"field-id": 4, "names": ["born"]},'
    ' {"field-id": 5, "names": ["tags"], "fields": [{"field-id": 6, "names": ["element"]}]}]'
)
CHECKED: Mapping[str, object] = {"write_page_checksum": True}


@dataclass(frozen=True)
class Sample:
    """A table to damage. `format` is that of its data files, `codec` that of its manifests."""

    format: str
    format_version: int
    codec: str
    metadata_suffix: str = ".metadata.json"

    def __str__(self) -> str:
        return f"{self.format}-v{self.format_version}-{self.codec}"


SAMPLES = (
    Sample("parquet", 2, "deflate"),
    Sample("parquet", 3, "zstandard", ".gz.metadata.json"),
    Sample("avro", 2, "null"),
    Sample("parquet", 1, "bzip2"),
    Sample("orc", 2, "deflate"),
)


@dataclass(frozen=True)
class Damage:
    """What is done to the bytes of a file."""

    kind: str
    at: int
    length: int
    bit: int

    @classmethod
    def of(cls, rng: Random, size: int) -> Damage:
        # headers and footers hold the most to misunderstand
        near = rng.choice((rng.randrange(size), min(rng.randrange(64), size - 1)))
        at = rng.choice((near, size - 1 - near))
        kind = rng.choice(("cut", "flip", "flip", "flip", "zero", "noise", "insert", "remove"))
        return cls(kind, at, rng.choice((1, 4, 8, 64)), rng.randrange(8))

    def done_to(self, raw: bytes) -> bytes:
        at, end = self.at, min(self.at + self.length, len(raw))
        noise = Random(at).randbytes
        match self.kind:
            case "cut":
                return raw[:at]
            case "flip":
                return raw[:at] + bytes([raw[at] ^ (1 << self.bit)]) + raw[at + 1 :]
            case "zero":
                return raw[:at] + bytes(end - at) + raw[end:]
            case "noise":
                return raw[:at] + noise(end - at) + raw[end:]
            case "insert":
                return raw[:at] + noise(self.length) + raw[at:]
            case _:
                return raw[:at] + raw[end:]


def write_sample(directory: Path, sample: Sample) -> TableWriter:
    """Write a table with every kind of file that its format and version have."""
    table = TableWriter.create(
        directory,
        PEOPLE,
        [("id", "bucket[2]")],
        format_version=sample.format_version,
        properties={"schema.name-mapping.default": MAPPING},
    )
    table.manifest_codec = sample.codec
    table.metadata_suffix = sample.metadata_suffix
    layout = FileLayout(
        sample.format,
        row_group_size=100,
        field_ids=sample.format != "orc",
        parquet=CHECKED if sample.format == "parquet" else None,
    )
    rng = Random(str(sample))
    files: list[WrittenFile] = []
    for first in (0, ROWS // 2):
        files += table.append([_person(rng, first + i) for i in range(ROWS // 2)], layout=layout)
    if sample.format_version == 2:
        table.delete_positions({file: [0, 3, 5] for file in files}, layout=layout)
    if sample.format_version == 3:
        table.write_vectors({file: [0, 3, 5, 70] for file in files})
    if sample.format_version > 1:
        table.delete_equal([{"name": "n3"}, {"name": None}], ["name"], layout=layout)
    return table


def _person(rng: Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": rng.choice((None, f"n{rng.randrange(40)}")),
        "height": rng.choice((None, rng.random())),
        "born": rng.choice((None, rng.randrange(20_000))),
        "tags": rng.choice((None, [], ["a", None, f"t{number}"])),
    }


def answer(table: TableWriter) -> pa.Table:
    return open_table(table.metadata_path).scan().to_table()


@cache
def _whole(sample: Sample) -> tuple[TableWriter, pa.Table]:
    """Return the sample, written once a process, and its rows."""
    directory = Path(tempfile.mkdtemp(prefix="damage-"))
    atexit.register(shutil.rmtree, directory)
    table = write_sample(directory / "table", sample)
    return table, answer(table)


def what_is_wrong(sample: Sample, seed: int, number: int) -> str | None:
    """Damage a file of the sample as the seed and number say; return what is wrong then."""
    table, whole = _whole(sample)
    rng = Random(f"{seed}/{number}")
    path = rng.choice(live_files(table))
    raw = path.read_bytes()
    damage = Damage.of(rng, len(raw))
    path.write_bytes(damage.done_to(raw))
    try:
        found = _wrong(table, path, whole)
    finally:
        path.write_bytes(raw)
    return found and f"{sample}, {path.name} ({len(raw)} bytes), {damage}: {found}"


def live_files(table: TableWriter) -> list[Path]:
    """Return the files that the table's current snapshot is read from."""
    lists = (table.directory / "metadata").glob("snap-*.avro")
    current = {table.metadata_path, table.local(table.snapshot()["manifest-list"])}
    old = {*lists, *(table.directory / "metadata").glob("*.json")} - current
    every = (p for p in table.directory.rglob("*") if p.is_file() and p.name != "version-hint.text")
    return sorted(p for p in every if p not in old)


def _wrong(table: TableWriter, path: Path, whole: pa.Table) -> str | None:
    try:
        rows = answer(table)
    except FloebergError as error:
        # the damage may be to the path itself
        named = path.name in str(error) or "file:" in str(error)
        return None if named else f"no file is named: {error.code}: {error}"
    except Exception:  # whatever else is raised is the finding
        return traceback.format_exc()
    if rows.num_rows < whole.num_rows:
        return f"{rows.num_rows} rows instead of {whole.num_rows}"
    if _is_checked(path) and not rows.equals(whole):
        return "other rows"
    return None


def _is_checked(path: Path) -> bool:
    """Say whether checksums cover what rows and deletes a file holds, but for its footer."""
    return path.suffix == ".puffin" or ".gz." in path.name


def examples(
    seed: int, numbers: range, jobs: int, samples: Sequence[Sample] = SAMPLES
) -> Iterator[tuple[int, str | None]]:
    """Yield each example's number, and what is wrong with it or None."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(_example, samples[number % len(samples)], seed, number)
            for number in numbers
        ]
        for done in as_completed(waiting):
            yield done.result()


def _example(sample: Sample, seed: int, number: int) -> tuple[int, str | None]:
    return number, what_is_wrong(sample, seed, number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.damage", description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="what to begin from; random unless given")
    parser.add_argument("--first", type=int, default=0, help="number of the first example")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    failed = 0
    for number, found in examples(
        seed, range(arguments.first, arguments.first + arguments.examples), arguments.jobs
    ):
        if found is not None:
            failed += 1
            print(f"seed {seed}, example {number}: {found}", flush=True)
    print(f"{arguments.examples} examples of seed {seed}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
