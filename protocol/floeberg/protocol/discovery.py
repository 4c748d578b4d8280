"""Find a table's current metadata file in its directory, and load it.

Tables without a catalog say in `metadata/version-hint.text` which file is current; where that is
missing or stale, it is the file with the highest version in its name. Spec: "File System Tables",
"Metastore Tables", "Naming for GZIP compressed Metadata JSON files".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from floeberg.protocol.errors import FloebergError, MissingFile, NotATable
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_forms import GZIP_MAGIC
from floeberg.protocol.storage import Storage

_METADATA_DIRECTORY = "metadata"
_HINT = "version-hint.text"
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_METADATA_NAME = re.compile(r"(?P<stem>.+?)(\.gz)?\.metadata\.json(\.gz)?")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_VERSION = re.compile(r"v?([0-9]{1,18})(-.*)?")
_ADVICE = "give a table's directory, or a *.metadata.json file"
_HEAD_BYTES = 64
# how far a mistaken directory is looked into for tables: a warehouse has at most one namespace
_WAREHOUSE_DEPTH = 2
_LISTED_DIRECTORIES = 20


def find_metadata(storage: Storage, location: str) -> str:
    """Return the location of the metadata file that is current at `location`.

    `location` is the metadata file itself, a table's directory, or the `metadata` directory in
    it. The hint counts when the file that it means is there; else the highest version does,
    compared as a number, and the last name in order among equals. Raises `NotATable` when there
    is none, which says what is there instead, and `MissingFile` when the hint means a higher
    version than there is: that file is lost, and an older one would be a shorter answer.
    """
    if not location:
        raise NotATable(f"a table's location is empty; {_ADVICE}")
    if _METADATA_NAME.fullmatch(_name(location)):
        return location
    directory = location.rstrip("/") or location
    if _name(directory) == _METADATA_DIRECTORY and (found := _current(storage, directory)):
        return found
    metadata_directory = f"{directory}/{_METADATA_DIRECTORY}"
    if found := _current(storage, metadata_directory):
        return found
    if storage.is_directory(directory):
        raise NotATable(f"no table at {location}: {_what_a_directory_is(storage, directory)}")
    if not _exists(storage, location):
        raise NotATable(f"no table at {location}: there is nothing of that name; {_ADVICE}")
    # a file by another name may be metadata, but it isn't read whole to find out
    head = storage.read_ranges(location, [(0, _HEAD_BYTES)])[0].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head and not head.startswith((b"{", GZIP_MAGIC)):
        raise NotATable(f"no table at {location}: it is a file, and none of metadata; {_ADVICE}")
    return location


def load_metadata(storage: Storage, metadata_location: str) -> TableMetadata:
    """Return the table metadata in the file `metadata_location`, whether or not it is gzipped."""
    try:
        raw = storage.read(metadata_location)
    except MissingFile as exc:
        raise MissingFile(metadata_location, "metadata file") from exc
    return TableMetadata.parse(raw, metadata_location)


def _what_a_directory_is(storage: Storage, directory: str) -> str:
    """Return why a directory is no table, for a message, and the way to a table below it."""
    pending = deque([(directory, 0)])
    for _ in range(_LISTED_DIRECTORIES):
        if not pending:
            break
        parent, depth = pending.popleft()
        try:
            entries = storage.list(parent)
        except FloebergError:
            continue  # it may be closed to us, which is not what the caller asked about
        if depth and _METADATA_DIRECTORY in entries:
            return (
                f"it is a directory with tables in it, such as {parent}: give one of those, or"
                " serve them all with `floeberg up --warehouse`"
            )
        if depth < _WAREHOUSE_DEPTH:
            pending += [(f"{parent}/{e}", depth + 1) for e in entries if e[0] not in "._"]
    return f"{directory}/{_METADATA_DIRECTORY} holds no metadata file; {_ADVICE}"


def _name(location: str) -> str:
    return location.rpartition("/")[2]


def _exists(storage: Storage, location: str) -> bool:
    try:
        storage.size(location)
    except MissingFile:
        return False
    return True


def _current(storage: Storage, directory: str) -> str | None:
    hint = _read_hint(storage, directory)
    # a listing may be long, so the names that the hint may mean are tried first
    hinted = _hinted_names(hint)
    name = next((n for n in hinted if _exists(storage, f"{directory}/{n}")), None)
    if name is None:
        names = storage.list(directory)
        version = _version(hinted[0]) if hinted else None
        if hint.isdecimal() and version is not None:
            name = newest_metadata([n for n in names if _version(n) == version])
        name = name or newest_metadata(names)
        if name is not None and version is not None and version > (_version(name) or 0):
            raise MissingFile(f"{directory}/{hinted[0]}", f"the metadata file that {_HINT} means,")
    return None if name is None else f"{directory}/{name}"


def _read_hint(storage: Storage, directory: str) -> str:
    try:
        hint = storage.read(f"{directory}/{_HINT}").decode("utf-8", errors="replace").strip()
    except MissingFile:
        return ""
    return "" if "/" in hint else hint


def _hinted_names(hint: str) -> tuple[str, ...]:
    """Return the names that a hint may mean: it holds a number, a file's name, or its stem."""
    if not hint or _METADATA_NAME.fullmatch(hint):
        return (hint,) if hint else ()
    return tuple(f"v{hint}{s}" if hint.isdecimal() else hint + s for s in _SUFFIXES)


def _version(name: str) -> int | None:
    match = _METADATA_NAME.fullmatch(name)
    version = _VERSION.fullmatch(match["stem"]) if match else None
    return int(version[1]) if version else None


def newest_metadata(names: Sequence[str]) -> str | None:
    """Return the metadata file of the highest version among `names`, or None.

    A bare UUID names a commit that was not finished, and is passed over. A name without
    a number counts only when it is the only one.

    >>> newest_metadata(["v9.metadata.json", "v10.gz.metadata.json", "snap-11.avro"])
    'v10.gz.metadata.json'
    """
    unnumbered: list[str] = []
    newest: tuple[int, str] | None = None
    for name in names:
        match = _METADATA_NAME.fullmatch(name)
        if match is None or _UUID.fullmatch(match["stem"]):
            continue
        version = _version(name)
        if version is None:
            unnumbered.append(name)
        elif newest is None or (version, name) > newest:
            newest = (version, name)
    if newest is not None:
        return newest[1]
    return unnumbered[0] if len(unnumbered) == 1 else None
