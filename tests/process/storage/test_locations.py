import pytest

from floeberg.process.storage.locations import rebase_location, split_location


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/data/t/x.parquet", ("file", "/data/t/x.parquet")),
        ("relative/x.parquet", ("file", "relative/x.parquet")),
        ("file:/data/x", ("file", "/data/x")),
        ("file:///data/x", ("file", "/data/x")),
        ("file://localhost/data/x", ("file", "/data/x")),
        ("s3://bucket/a%2Fb c#d{e}+f", ("s3", "bucket/a%2Fb c#d{e}+f")),
        ("s3a://bucket/k", ("s3", "bucket/k")),
        ("s3n://bucket/k", ("s3", "bucket/k")),
        ("gs://bucket/k", ("gs", "bucket/k")),
        ("/data/odd:/name", ("file", "/data/odd:/name")),
    ],
)
def test_splits_the_scheme_and_leaves_the_path_alone(location, expected):
    assert split_location(location) == expected


def test_the_longest_prefix_is_replaced():
    rebase = {"s3://w": "/a", "s3://w/db": "/b", "file:/x": "/c"}

    assert rebase_location("s3://w/db/t", rebase) == "/b/t"
    assert rebase_location("s3://w/other/t", rebase) == "/a/other/t"
    assert rebase_location("file:/x", rebase) == "/c"


def test_a_prefix_ends_where_a_name_ends():
    assert rebase_location("s3://warehouse-2/t", {"s3://warehouse": "/a"}) == "s3://warehouse-2/t"
    assert rebase_location("s3://warehouse/t", {"s3://warehouse/": "/a/"}) == "/a/t"


def test_a_relative_prefix_may_begin_with_a_dot_on_either_side():
    assert rebase_location("lake/t/x", {"./lake": "/a"}) == "/a/t/x"
    assert rebase_location("./lake/t/x", {"lake": "/a"}) == "/a/t/x"
    assert rebase_location("./other/x", {"./lake": "/a"}) == "./other/x"
