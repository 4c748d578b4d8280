"""Everything that floeberg raises on purpose, sorted by what the caller can do about it.

`BadRequest`: change the call. `Denied`: present other credentials. `Unsupported`: the table is
valid Iceberg that this version does not read. `CorruptTable`: the table's files contradict each
other or the spec. `Unavailable`: try again. Every error has a stable `code`, the same in Python, in
the command line and over Flight (`floeberg.protocol.flight_errors` does the translation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from floeberg.protocol.civil_time import instant_text
from floeberg.protocol.suggestions import cut, nearest, quoted


class FloebergError(Exception):
    """Base of all deliberate errors; `str(error)` is a sentence for a person.

    `request_id` is set on one that came from a server: by it, its log knows the call.
    """

    code: ClassVar[str] = "FLOEBERG_ERROR"
    request_id: str | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)


class BadRequest(FloebergError):
    """The call itself is wrong: repeating it unchanged will fail again."""

    code = "BAD_REQUEST"


class Denied(FloebergError):
    """The caller may not do this, or did not prove who they are."""

    code = "DENIED"


class Unsupported(FloebergError):
    """Valid Iceberg, or a valid request, that this version does not serve; the message names the
    feature."""

    code = "UNSUPPORTED"


class CorruptTable(FloebergError):
    """Files of the table are missing, unreadable, or contradict the spec; the message names the
    file."""

    code = "CORRUPT_TABLE"


class Unavailable(FloebergError):
    """A temporary condition: the same call may succeed later."""

    code = "UNAVAILABLE"


class InternalError(FloebergError):
    """A fault of floeberg itself. The message carries no detail of the server's inside."""

    code = "INTERNAL"


# --- what the caller asked for -------------------------------------------------------------------


def _suggest(name: str, known: Sequence[str]) -> str:
    """Return the part of a message that lists what there is, the nearest names first."""
    if not known:
        return "it has none"
    near = nearest(name, known)
    return f"it has {_listed(near + [k for k in known if k not in near])}"


def _listed(names: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(map(cut, names[:limit]))
    more = len(names) - limit
    return shown + (f" and {more} more" if more > 0 else "")


class UnknownTable(BadRequest):
    code = "UNKNOWN_TABLE"

    def __init__(self, name: str, near: Sequence[str] = (), catalogs: Sequence[str] = ()) -> None:
        """`near` are full names that may have been meant; `catalogs` are all there are, the default
        one first, where more than one is served."""
        hint = (
            f"did you mean {' or '.join(map(cut, near))}?"
            if near
            else "`floeberg tables` lists what is served"
        )
        if catalogs:
            hint += (
                f" (a name without its catalog is one of {catalogs[0]!r}; the catalogs are"
                f" {_listed(catalogs)})"
            )
        super().__init__(f"no table {quoted(name)}; {hint}")

    def with_hint(self, hint: str) -> UnknownTable:
        """Return the error with another `hint` behind its message."""
        error = UnknownTable.__new__(UnknownTable)
        Exception.__init__(error, f"{self}; {hint}")
        return error


class UnknownCatalog(BadRequest):
    code = "UNKNOWN_CATALOG"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"no catalog {quoted(name)} is configured; {_suggest(name, known)}")


class UnknownColumn(BadRequest):
    code = "UNKNOWN_COLUMN"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no column {quoted(name)} in the schema that is read; {_suggest(name, known)}"
        )


class AmbiguousColumn(BadRequest):
    code = "AMBIGUOUS_COLUMN"

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"column {quoted(name)} is ambiguous without regard to case: it may be"
            f" {' or '.join(map(cut, candidates))}; write it exactly and read case-sensitively"
        )


class BadFilter(BadRequest):
    """A filter that cannot be parsed, or an operator that its column's type does not have."""

    code = "BAD_FILTER"


class BadLiteral(BadRequest):
    """A literal that does not fit its column's type."""

    code = "BAD_LITERAL"

    def __init__(
        self, literal: object, type_name: str, why: str, column: str | None = None
    ) -> None:
        # cut before it is quoted: the literal may be as long as a request
        shown = quoted(literal, 80) if isinstance(literal, str) else cut(repr(literal), 80)
        where = f" column {quoted(column)}" if column else ""
        super().__init__(f"literal {shown} does not fit {type_name}{where}: {why}")


class UnknownSnapshot(BadRequest):
    code = "UNKNOWN_SNAPSHOT"

    def __init__(self, snapshot_id: int, known: Sequence[int] = ()) -> None:
        newest = ", ".join(str(s) for s in list(known)[-3:])
        hint = f"; the newest it has: {newest}" if newest else "; the table has no snapshots"
        super().__init__(f"no snapshot {snapshot_id} in the table (it may have been expired){hint}")


class UnknownRef(BadRequest):
    code = "UNKNOWN_REF"

    def __init__(self, name: str, known: Sequence[str], kind: str = "branch or tag") -> None:
        super().__init__(f"no {kind} {quoted(name)} in the table; {_suggest(name, known)}")


class NoSnapshotAsOf(BadRequest):
    code = "NO_SNAPSHOT_AS_OF"

    def __init__(self, timestamp_ms: int, why: str) -> None:
        super().__init__(f"no snapshot was current at {instant_text(timestamp_ms)}: {why}")


class ConflictingSnapshot(BadRequest):
    code = "CONFLICTING_SNAPSHOT"

    def __init__(self, given: Sequence[str]) -> None:
        super().__init__(
            f"{' and '.join(given)} exclude each other; name the snapshot to read in one way only"
        )


class BadCommand(BadRequest):
    """A descriptor, a command or an option that cannot be understood."""

    code = "BAD_COMMAND"


class BadSql(BadRequest):
    """SQL that can't be understood."""

    code = "BAD_SQL"

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        """`line` and `column` count from 1, in the text as it was sent."""
        super().__init__(why if line is None else f"line {line}, column {column}: {why}")


class UnsupportedSql(BadRequest):
    """SQL that is understood and not served; the message says what to write instead."""

    code = "UNSUPPORTED_SQL"


class ReadOnly(BadRequest):
    """A statement that would change something: tables are read here, and nothing else."""

    code = "READ_ONLY"

    def __init__(self, statement: str) -> None:
        super().__init__(
            f"{statement} is refused: tables can only be read here; send one SELECT, WITH, VALUES,"
            " EXPLAIN, SHOW TABLES or DESCRIBE"
        )


class BadConfig(BadRequest):
    """A configuration value that cannot be used; the message names the key."""

    code = "BAD_CONFIG"


class BadTicket(BadRequest):
    """A ticket that was damaged, made up, or sealed with a key that this process does not hold."""

    code = "BAD_TICKET"


class ExpiredTicket(BadRequest):
    code = "EXPIRED_TICKET"

    def __init__(self, seconds_ago: int) -> None:
        super().__init__(
            f"the ticket expired {seconds_ago} s ago; call GetFlightInfo again for a fresh one"
        )


class StaleTicket(BadRequest):
    """A ticket that names manifests which are not what they were when it was sealed."""

    code = "STALE_TICKET"

    def __init__(self, location: str, what: str) -> None:
        super().__init__(
            f"manifest {location}, which the ticket names, {what}: the snapshot may have been"
            " expired; call GetFlightInfo again for a fresh ticket"
        )


class BadHandle(BadRequest):
    """The handle of a prepared statement that was damaged, made up, or sealed with another key."""

    code = "BAD_HANDLE"


class PlanTooLarge(BadRequest):
    """More tasks, or bytes of tickets, than an answer or a ticket may have."""

    code = "PLAN_TOO_LARGE"

    def __init__(
        self, what: str, remedy: str = "narrow the filter, or ask for a larger split_size"
    ) -> None:
        super().__init__(f"{what}; {remedy}")


class SqlFailed(BadRequest):
    """A statement that can't be computed over these rows: a text that is no number, an overflow."""

    code = "SQL_FAILED"


class QueryTooLarge(BadRequest):
    """A statement that needs more memory and disk than a query may take."""

    code = "QUERY_TOO_LARGE"

    def __init__(self, memory_bytes: int, spill_bytes: int) -> None:
        super().__init__(
            f"the query needs more than the {memory_bytes >> 20} MiB of memory and the"
            f" {spill_bytes >> 20} MiB of disk that it may take now; filter or aggregate earlier,"
            " read fewer columns, or ask who runs the worker for more ('sql_memory_bytes',"
            " 'sql_spill_bytes')"
        )


class LimitExceeded(BadRequest):
    """A query that takes more than a query of its principal may."""

    code = "LIMIT_EXCEEDED"

    def __init__(self, limit: str, allowed: float, what: str) -> None:
        """`limit` is one of `rows`, `bytes`, `tasks` and `seconds`."""
        super().__init__(
            f"{what}, and a query of yours may have {allowed:,} {limit}; {_LIMIT_REMEDIES[limit]},"
            f" or ask who runs the server for a higher limit of {limit}"
        )


_LIMIT_REMEDIES = {
    "rows": "narrow the filter, or set a limit",
    "bytes": "narrow the filter to fewer partitions and files",
    "tasks": "narrow the filter, or ask for a larger split_size",
    "seconds": "narrow the filter, or read in several queries",
}


# --- who may ask ---------------------------------------------------------------------------------


class Unauthenticated(Denied):
    code = "UNAUTHENTICATED"


class NotPermitted(Denied):
    """A policy, or whose a ticket is, keeps this caller from what it asked for."""

    code = "NOT_PERMITTED"


class AccessDenied(Denied):
    """Storage or a catalog refused floeberg's own credentials."""

    code = "ACCESS_DENIED"


class ExpiredCredentials(AccessDenied):
    """Credentials that were lent for a table have ended, and there are no others."""

    code = "EXPIRED_CREDENTIALS"


# --- what the table is like ----------------------------------------------------------------------


class UnsupportedVersion(Unsupported):
    code = "UNSUPPORTED_VERSION"

    def __init__(self, version: object, where: str) -> None:
        super().__init__(
            f"{where} has format-version {version!r}; this version of floeberg reads 1, 2 and 3"
        )


class NotATable(CorruptTable):
    """There is no table metadata where a table was looked for."""

    code = "NOT_A_TABLE"


class MissingFile(CorruptTable):
    """A file that the table's metadata names does not exist."""

    code = "MISSING_FILE"

    def __init__(self, location: str, role: str = "file") -> None:
        super().__init__(
            f"{role} {location} does not exist; it may have been removed by hand or by expiry:"
            " read a snapshot that does not need it, or restore it"
        )


class CorruptMetadata(CorruptTable):
    code = "CORRUPT_METADATA"


class CorruptManifest(CorruptTable):
    """A manifest list or manifest that cannot be decoded."""

    code = "CORRUPT_MANIFEST"


class CorruptDataFile(CorruptTable):
    code = "CORRUPT_DATA_FILE"


class CorruptDeletes(CorruptTable):
    """A delete file or deletion vector that cannot be decoded, or that contradicts its metadata."""

    code = "CORRUPT_DELETES"


# --- what may pass -------------------------------------------------------------------------------


class StorageUnavailable(Unavailable):
    code = "STORAGE_UNAVAILABLE"


class CatalogUnavailable(Unavailable):
    code = "CATALOG_UNAVAILABLE"


class CredentialsUnavailable(Unavailable):
    """Credentials that were lent for a table have ended, and nobody was there to renew them."""

    code = "CREDENTIALS_UNAVAILABLE"


class NoWorkers(Unavailable):
    code = "NO_WORKERS"

    def __init__(self, draining: int = 0, *, is_stopping: bool = False) -> None:
        """`draining` workers are there still, but take nothing new; `is_stopping` says that the
        coordinator is."""
        if is_stopping:
            why = "the coordinator is stopping, and its workers have left; try again soon"
        elif draining:
            which = "the only worker is" if draining == 1 else f"all {draining} workers are"
            why = f"{which} draining, for no new streams; start another with `floeberg worker`"
        else:
            why = (
                "no worker has registered with this coordinator yet;"
                " start one with `floeberg worker`, or wait"
            )
        super().__init__(why)


class WorkerBusy(Unavailable):
    code = "WORKER_BUSY"


class FleetBusy(Unavailable):
    """No worker of the fleet has room for another stream."""

    code = "FLEET_BUSY"

    def __init__(self, workers: int) -> None:
        which = "the only worker serves" if workers == 1 else f"all {workers} workers serve"
        super().__init__(
            f"{which} as many streams as it may; try again in some seconds, close streams that are"
            " not read, or add workers"
        )


class TooManyQueries(Unavailable):
    """As many queries of the principal go on as it may have at once."""

    code = "TOO_MANY_QUERIES"

    def __init__(self, allowed: int) -> None:
        which = "a query of yours goes on" if allowed == 1 else f"{allowed} queries of yours go on"
        super().__init__(
            f"{which}, as many as you may have at once; try again when one has ended, close streams"
            " that are not read, or ask who runs the server for a higher limit of queries"
        )


class ServerUnavailable(Unavailable):
    """A coordinator or worker cannot be reached, or went away in the middle of a call."""

    code = "SERVER_UNAVAILABLE"


class TimedOut(Unavailable):
    """A call's deadline passed before its answer was complete."""

    code = "TIMED_OUT"

    is_silent: bool = False
    """Whether the server answered nothing else either, as the client found then."""


class PlanTimeout(Unavailable):
    """A plan took longer than the coordinator allows; the message says how far it came."""

    code = "PLAN_TIMEOUT"


class ServerBusy(Unavailable):
    """The coordinator plans as many large scans as it may; another takes its turn later."""

    code = "SERVER_BUSY"


class Cancelled(Unavailable):
    code = "CANCELLED"


def _subclasses(cls: type[FloebergError]) -> Iterator[type[FloebergError]]:
    yield cls
    for sub in cls.__subclasses__():
        yield from _subclasses(sub)


def known_codes() -> tuple[str, ...]:
    """Return the codes of all errors that this version knows, sorted."""
    return tuple(sorted({cls.code for cls in _subclasses(FloebergError)}))


def error_from_code(code: str, message: str) -> FloebergError:
    """Return the error that `code` stands for, as it was raised on another machine.

    A code that this version does not know (a newer server) gives a plain `FloebergError`.

    >>> error_from_code("UNKNOWN_TABLE", "no table 'x'")
    UnknownTable("no table 'x'")
    """
    for cls in _subclasses(FloebergError):
        if cls.code == code:
            error = cls.__new__(cls)
            Exception.__init__(error, message)
            return error
    return FloebergError(message)
