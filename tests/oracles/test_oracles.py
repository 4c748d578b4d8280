"""What floeberg reads is what its peers read, or the difference has a reason listed here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from floeberg.protocol.errors import FloebergError, Unsupported
from tests.oracles import forgiveness
from tests.oracles.comparison import Comparison, Row, compare
from tests.oracles.forgiveness import Forgive
from tests.oracles.matrix import Cells, Outcome
from tests.oracles.oracles import ORACLES, Oracles
from tests.oracles.readers import message_of
from tests.oracles.tables import TABLES

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Difference:
    """A reason for which an oracle's rows differ.

    `forgive` takes away what the reason explains; what is left is a difference still.
    """

    oracles: tuple[str, ...]
    reason: str
    forgive: Forgive
    tables: tuple[str, ...] = ()
    """The only tables where it may be the reason; any, if there are none here."""


@dataclass(frozen=True)
class Refusal:
    """A reason for which an oracle reads nothing at all. `says` is part of its message."""

    oracles: tuple[str, ...]
    reason: str
    says: str
    tables: tuple[str, ...] = ()


def _as_the_snapshot_named_it(c: Comparison) -> Comparison:
    """Compare what is read of a ref of `spark.refs` under the schema that its snapshot had."""

    def renamed(row: Row) -> Row:
        name = row["title"] if "title" in row else row["name"]
        return {"id": row["id"], "name": name, "age": row["age"], "region": row["region"]}

    return forgiveness.filtered(c.alike(renamed)) if c.scan.ref else c


DIFFERENCES = (
    # by decision (docs/decisions/0002-three-valued-filters.md)
    Difference(
        ("spark", "duckdb", "java"),
        "NaN is the greatest number and equals itself there; IEEE 754's here",
        forgiveness.nan,
    ),
    Difference(
        ("java",),
        "two-valued there: != and NOT IN, NOT LIKE are true of null",
        forgiveness.null,
    ),
    Difference(
        ("pyiceberg",),
        "NOT IN is true of null there; unknown here",
        forgiveness.null,
    ),
    Difference(
        ("spark", "java", "pyiceberg"),
        "-0.0 is less than 0.0 in a partition there; its equal here",
        forgiveness.signed_zero,
    ),
    Difference(
        ("pyiceberg",),
        "a branch has its snapshot's schema there, and a filter the table's; here and in Java the"
        " branch has the table's",
        _as_the_snapshot_named_it,
        ("spark.refs",),
    ),
    # by the spec, against the oracle
    Difference(
        ("pyiceberg",),
        "a null list or map of structs comes out empty there (spec, Column Projection)",
        forgiveness.empty_for_null,
    ),
    Difference(
        ("java", "pyiceberg"),
        "an infinite literal is beyond every float there, and prunes its partition away",
        forgiveness.infinity,
    ),
    Difference(
        ("spark", "java", "pyiceberg", "duckdb"),
        "truncating the least integer overflows there, and prunes rows away",
        forgiveness.least_integer,
        ("spark.truncate",),
    ),
    Difference(
        ("java",),
        "uuids compare as two signed longs there; as bytes here (spec, Appendix D)",
        forgiveness.uuid,
        ("java.types_parquet", "java.partitions", "fixtures.partitions_nanos"),
    ),
    Difference(
        ("duckdb",),
        "rows are lost there when uuid buckets are pruned (spec, Appendix B)",
        forgiveness.uuid,
        ("java.partitions",),
    ),
    Difference(
        ("duckdb",),
        "rows are lost there when truncated decimals are pruned (spec, Truncate Transform Details)",
        forgiveness.negative_decimal,
        ("java.partitions",),
    ),
    Difference(
        ("java",),
        "a struct of which only absent fields are read comes out null there",
        forgiveness.hollow_for_null,
        ("pyiceberg.schema_evolution",),
    ),
    Difference(
        ("java",),
        "a null struct of which only a defaulted field is read comes out not null there",
        forgiveness.columns("st"),
        ("java.defaults_parquet",),
    ),
    Difference(
        ("java",),
        "a name mapping is lost there below the top level, and in ORC after a rename",
        lambda c: forgiveness.filtered(forgiveness.columns("st", "title")(c)),
        ("spark.added_parquet", "spark.added_orc", "pyiceberg.added_files"),
    ),
    Difference(
        ("spark",),
        "its Avro reader gives the rows of a file one row id (spec, Row Lineage: each its own)",
        forgiveness.columns("_row_id"),
        ("spark.vectors_avro",),
    ),
    Difference(
        ("duckdb",),
        "rows from before v3 have a last update there; null here and in Spark (spec, Row Lineage)",
        forgiveness.columns("_last_updated_sequence_number"),
        ("spark.upgraded_to_v3",),
    ),
    Difference(
        ("spark", "java"),
        "row groups without a column are skipped there, though it has a default (spec, Default"
        " Values)",
        forgiveness.filtered,
        ("java.defaults_parquet", "fixtures.defaults"),
    ),
    Difference(
        ("duckdb",),
        "null in one of several keys deletes too much there (spec, Equality Delete Files)",
        forgiveness.ours,
        (
            "java.equality_parquet",
            "java.equality_v3",
            "java.equality_and_vectors",
            "fixtures.equality_v2",
            "fixtures.equality_v3",
            "fixtures.equality_in_a_partition",
        ),
    ),
    Difference(
        ("duckdb",),
        "a month before 1970 is one too late there, and prunes rows away (spec, Transforms)",
        forgiveness.before_1970,
        ("pyiceberg.times",),
    ),
)

REFUSALS = (
    Refusal(("spark",), "has no such type", "Spark does not support time fields"),
    Refusal(("spark",), "has no such type", "Unsupported type: variant"),
    Refusal(
        ("spark", "java"),
        "fails on a key that was dropped",
        "NullPointerException",
        ("java.equality_dropped",),
    ),
    Refusal(
        ("spark", "java"),
        "fails on a nested key that isn't selected",
        "required field for ID",
        ("java.equality_nested",),
    ),
    Refusal(("spark", "java"), "reads no default from ORC", "ORC cannot read default value"),
    Refusal(
        ("spark", "java"),
        "binds the filter on a tag to the current schema",
        "Cannot find field 'name'",
        ("spark.refs",),
    ),
    Refusal(
        ("pyiceberg",),
        "binds the filter on a tag to the current schema",
        "Could not find field with name name",
        ("spark.refs",),
    ),
    Refusal(("java",), "fills no metadata columns", "NoMetadataColumns"),
    Refusal(("java",), "fails on filters of nanoseconds", "Not an instance of java.lang.Long"),
    Refusal(("java",), "fails on filters of nanoseconds", "not supported in ORC SearchArguments"),
    Refusal(("java",), "needs a newer commons-lang than Spark's for variants", "NoSuchMethodError"),
    Refusal(("java",), "fails on a mapped struct", "Not a struct type", ("spark.added_parquet",)),
    Refusal(
        ("java",),
        "reads a fixed partition value as if its length stood before it",
        "Malformed data",
        ("fixtures.partitions_fixed",),
    ),
    Refusal(("java",), "fails at NOT LIKE on null", "String.startsWith", ("spark.identity",)),
    Refusal(("java",), "has no Brotli", "BrotliCodec"),
    Refusal(("pyiceberg",), "has no metadata columns", "Could not find column: '_"),
    Refusal(("pyiceberg",), "reads no Avro data", "Unsupported file format: FileFormat.AVRO"),
    Refusal(("pyiceberg",), "reads no Avro deletes", "Delete file format not supported"),
    Refusal(("pyiceberg",), "reads no equality deletes", "does not yet support equality deletes"),
    Refusal(("pyiceberg",), "can't test a map for null", "Cannot explicitly project List or Map"),
    Refusal(("pyiceberg",), "can't filter uuid", "ArrowNotImplementedError"),
    Refusal(("pyiceberg",), "reads no uuid from ORC", "Cannot promote an binary to uuid"),
    Refusal(("pyiceberg",), "can't filter nanoseconds", "TimestampLiteral into timestamp"),
    Refusal(("pyiceberg",), "can't filter a defaulted date", "'datetime.date' and 'int'"),
    Refusal(
        ("pyiceberg",), "needs a manifest list", "MetadataWrapper", ("fixtures.inline_manifests",)
    ),
    Refusal(("pyiceberg",), "has no such type", "TableMetadataWrapper", ("java.variants",)),
    Refusal(("duckdb",), "has no metadata columns", 'Referenced column "_'),
    Refusal(("duckdb",), "takes no refs", "NoRefs"),
    Refusal(("duckdb",), "reads Parquet only", "only supports 'parquet'"),
    Refusal(("duckdb",), "has no framed LZ4", 'compression codec "LZ4"'),
    Refusal(("duckdb",), "has no such type", "Unrecognized primitive type: timestamptz_ns"),
    Refusal(("duckdb",), "gives no variant to Arrow", "Unsupported Arrow type VARIANT"),
    Refusal(("duckdb",), "needs a manifest list", "'manifest-list' is missing"),
    Refusal(
        ("duckdb",),
        "fails on a promoted key",
        "InternalException",
        ("java.equality_evolved",),
    ),
    Refusal(
        ("duckdb",),
        "crashes on a nested or dropped key",
        "DuckDbCrashed",
        ("java.equality_nested", "java.equality_dropped"),
    ),
)

OUR_REFUSALS = {
    "spark.orc_far_times": "pyarrow reads ORC's timestamps in nanoseconds, which end in 2262",
}
"""The tables of which floeberg may refuse a scan as unsupported."""


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("title", TABLES)
def test_reads_as_the_oracle_reads(
    title: str, oracle: str, oracles: Oracles, matrix: Cells
) -> None:
    made = oracles.table(title)
    reader = oracles.readers[oracle]
    outcomes: Counter[Outcome] = Counter()
    unexplained: list[str] = []
    for scan in made.scans:
        try:
            ours = oracles.ours(made, scan)
        except FloebergError as refusal:
            if title not in OUR_REFUSALS or not isinstance(refusal, Unsupported):
                unexplained.append(f"{scan}: floeberg refuses: [{refusal.code}] {refusal}")
            outcomes["floeberg refuses", OUR_REFUSALS.get(title, "")] += 1
            continue
        try:
            theirs = reader.read(made, scan)
        except Exception as refusal:  # whatever the peer's library raises
            reason = _reason_of_refusal(title, oracle, message_of(refusal))
            if not reason:
                unexplained.append(f"{scan}: refuses: {message_of(refusal)}")
            outcomes["refuses", reason] += 1
            continue
        left, reasons = _forgiven(title, oracle, compare(scan, ours, theirs))
        if left.agrees:
            outcomes.update([("differs", reason) for reason in reasons] or [("agrees", "")])
        else:
            outcomes["DIFFERS", ""] += 1
            unexplained.append(str(left))
    matrix[title, oracle] = outcomes
    if unexplained:
        count = f"{len(unexplained)} of {len(made.scans)} scans"
        pytest.fail("\n".join([f"{title}, {oracle}: {count}", *unexplained[:8]]), pytrace=False)


def _reason_of_refusal(title: str, oracle: str, message: str) -> str:
    for refusal in REFUSALS:
        fits = not refusal.tables or title in refusal.tables
        if oracle in refusal.oracles and fits and refusal.says in message:
            return refusal.reason
    return ""


def _forgiven(title: str, oracle: str, comparison: Comparison) -> tuple[Comparison, list[str]]:
    """Return what no reason explains, and the reasons that explained something."""
    reasons = []
    for difference in DIFFERENCES:
        fits = not difference.tables or title in difference.tables
        if comparison.agrees or oracle not in difference.oracles or not fits:
            continue
        left = difference.forgive(comparison)
        if left != comparison:
            reasons.append(difference.reason)
        comparison = left
    return comparison, reasons


def test_every_listed_reason_is_needed(matrix: Cells) -> None:
    """A reason that explains nothing any more would hide the next mistake."""
    if len(matrix) < len(TABLES) * len(ORACLES):
        pytest.skip("not every table was read")
    given = {(o, reason) for (_, o), outcomes in matrix.items() for _, reason in outcomes}
    listed = {(o, r.reason) for r in (*DIFFERENCES, *REFUSALS) for o in r.oracles}

    assert not listed - given
