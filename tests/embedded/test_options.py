from __future__ import annotations

import pytest

from floeberg.embedded import ScanOptions
from floeberg.protocol.errors import BadCommand


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0),
        ("limit", -1),
        ("split_size", -1),
        ("num_workers", 0),
        ("files_at_once", 0),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(name: str, value: int):
    with pytest.raises(BadCommand, match=f"{name} is {value}"):
        ScanOptions(**{name: value})
