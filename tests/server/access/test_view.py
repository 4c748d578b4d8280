from __future__ import annotations

import pytest

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import NotPermitted, UnknownColumn
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.json_form import bound_to_named_json
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from floeberg.server.access import Access, TableView
from tests.support.lake import TableWriter
from tests.support.people import write_people


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    return write_people(tmp_path_factory.mktemp("lake") / "people")


@pytest.fixture(scope="module")
def metadata(table: TableWriter) -> TableMetadata:
    path = table.metadata_path
    return TableMetadata.parse(path.read_bytes(), str(path))


def seen(
    metadata: TableMetadata,
    access: Access,
    filter: str | None = None,
    select: tuple[str, ...] | None = None,
    ref: str | None = None,
) -> ResolvedScan:
    request = ScanRequest(as_expression(filter), select, ref=ref)
    return resolve(metadata, request, view=TableView.of(metadata, access))


def filter_of(scan: ResolvedScan) -> object:
    return bound_to_named_json(scan.filter, scan.schema)


def test_rows_are_narrowed_whatever_the_filter(metadata: TableMetadata):
    access = Access(rows=as_expression("region = 'eu'"))

    assert filter_of(seen(metadata, access)) == ["=", "region", "eu"]
    assert filter_of(seen(metadata, access, "id > 5 OR id < 2")) == [
        *("and", ["or", [">", "id", 5], ["<", "id", 2]], ["=", "region", "eu"])
    ]
    assert filter_of(seen(metadata, access, "region = 'us'")) == [
        *("and", ["=", "region", "us"], ["=", "region", "eu"])
    ]
    assert filter_of(seen(metadata, access, "false")) == ["false"]


def test_rows_mean_the_column_and_not_its_name(metadata: TableMetadata):
    """In the snapshot of the tag, the column was called `area`."""
    scan = seen(metadata, Access(rows=as_expression("region = 'eu'")), ref="half")

    assert filter_of(scan) == ["=", "area", "eu"]


def test_rows_are_tested_for_null_in_snapshots_where_there_may_be_nulls(metadata: TableMetadata):
    access = Access(rows=as_expression("salary IS NOT NULL"))

    assert filter_of(seen(metadata, access)) == ["not-null", "salary"]


def test_a_snapshot_without_the_column_that_rows_look_at_is_not_shown(table: TableWriter):
    table.add_column("late", "string")
    path = table.metadata_path
    metadata = TableMetadata.parse(path.read_bytes(), str(path))
    access = Access(rows=as_expression("late IS NULL"))

    assert filter_of(seen(metadata, access)) == ["is-null", "late"]
    with pytest.raises(NotPermitted, match="another schema"):
        seen(metadata, access, ref="half")


def test_hidden_columns_are_not_there(metadata: TableMetadata):
    access = Access(hidden=("EMAIL", "address.street", "notes.element.secret"))
    scan = seen(metadata, access)

    assert "email" not in scan.projection.names
    names = str(arrow_schema(scan.projection))
    assert "street" not in names
    assert "secret" not in names
    assert "city" in names
    for name in ("email", "address.street", "notes.element.secret"):
        with pytest.raises(UnknownColumn) as unknown:
            seen(metadata, access, select=(name,))
        assert "email" not in str(unknown.value).partition(";")[2]
        with pytest.raises(UnknownColumn):
            seen(metadata, access, filter=f"{name} IS NULL")


def test_a_struct_all_of_whose_fields_are_hidden_goes_too(metadata: TableMetadata):
    scan = seen(metadata, Access(hidden=("address.street", "address.city")))

    assert "address" not in scan.projection.names


def test_masked_columns_are_nullable_and_under_ids_of_no_file(metadata: TableMetadata):
    access = Access(masked=("salary", "address"))
    scan = seen(metadata, access, select=("salary", "address", "id"))

    salary, address, number = scan.projection.fields
    assert (salary.name, salary.required) == ("salary", False)
    assert (number.name, number.required) == ("id", True)
    known = {f.field_id for s in metadata.schemas for f in s.fields}
    hidden_ids = [salary.field_id, address.field_id, *(f.field_id for f in address.type.fields)]
    assert not known & set(hidden_ids)
    assert min(hidden_ids) > metadata.last_column_id
    assert all(not f.required for f in address.type.fields)


@pytest.mark.parametrize(
    ("filter", "becomes"),
    [
        ("email = 'mail3@example'", ["false"]),
        ("email != 'mail3@example'", ["false"]),
        ("NOT email = 'mail3@example'", ["false"]),
        ("email IS NULL", ["true"]),
        ("email IS NOT NULL", ["false"]),
        ("NOT (email IS NULL)", ["false"]),
        ("email IN ('a', 'b') OR id = 1", ["=", "id", 1]),
        ("email NOT IN ('a', 'b') AND id = 1", ["false"]),
        ("email LIKE 'mail%'", ["false"]),
        ("NOT email LIKE 'mail%'", ["false"]),
        ("salary > 3", ["false"]),
        ("NOT salary > 3", ["false"]),
        ("salary IS NULL", ["true"]),
        ("address.city = 'city 3'", ["false"]),
        ("address IS NULL", ["true"]),
        ("address IS NOT NULL", ["false"]),
        ("NOT (email = 'a' AND id = 1)", ["!=", "id", 1]),
    ],
)
def test_a_filter_sees_null_in_masked_columns(
    metadata: TableMetadata, filter: str, becomes: object
):
    access = Access(masked=("email", "salary", "address"))

    assert filter_of(seen(metadata, access, filter)) == becomes


def test_rows_may_look_at_what_the_caller_may_not(metadata: TableMetadata):
    access = Access(as_expression("email = 'mail3@example'"), ("email",), ())

    assert filter_of(seen(metadata, access)) == ["=", "email", "mail3@example"]
    hidden = Access(as_expression("email = 'mail3@example'"), (), ("email",))
    assert filter_of(seen(metadata, hidden)) == ["=", "email", "mail3@example"]


def test_what_a_column_was_called_before_is_masked_too(metadata: TableMetadata):
    """`nickname` has been dropped, and `region` was `area`; older snapshots have both."""
    for name in ("nickname", "area", "region"):
        for access in (Access(hidden=(name,)), Access(masked=(name,))):
            scan = seen(metadata, access, ref="half")
            ids = {f.field_id for f in scan.projection.fields}
            column = "nickname" if name == "nickname" else "area"
            real = scan.schema.lookup(column).field_id
            assert real not in ids


def test_metadata_columns_are_not_there(metadata: TableMetadata):
    for name in ("_file", "_pos", "_partition", "_partition.team", "_spec_id", "_row_id"):
        with pytest.raises(UnknownColumn):
            seen(metadata, Access(hidden=("email",)), select=(name,))


@pytest.mark.parametrize(
    "access",
    [
        Access(hidden=("emial",)),
        Access(masked=("emial",)),
        Access(rows=as_expression("regoin = 'eu'")),
        Access(rows=as_expression("id = 'eu'")),
        Access(rows=as_expression("area = 'eu'")),  # it has another name by now
        Access(masked=("notes.element",)),
        Access(hidden=("notes.element",)),
    ],
)
def test_a_policy_that_cannot_be_applied_shows_nothing(
    metadata: TableMetadata, access: Access, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(NotPermitted) as refused:
        seen(metadata, access)

    assert "coordinator's log" in str(refused.value)
    assert "policy can't be applied" in caplog.text
    for secret in ("emial", "regoin", "area", "notes"):
        assert secret not in str(refused.value)


def test_specs_and_sort_orders_name_no_column_that_is_kept_back(metadata: TableMetadata):
    for access in (Access(masked=("team",)), Access(hidden=("team",))):
        assert [spec.fields for spec in TableView.of(metadata, access).specs()] == [()]
    (kept,) = TableView.of(metadata, Access(hidden=("email",))).specs()
    assert [field.name for field in kept.fields] == ["team"]
