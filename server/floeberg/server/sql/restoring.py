"""The types of what fragments give, which travel as Arrow and come back as other types at times.

The engine shows a HUGEINT as a decimal and a UUID as text; what reads them again casts them back,
so that a merging statement computes with the types that the whole one would have.
"""

from __future__ import annotations

import re

_AS_THEY_ARE = frozenset(
    {
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE"),
        *("VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS"),
        *("TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE", "INTERVAL", '"NULL"'),
    }
)
_CAST_BACK = frozenset({"HUGEINT", "UUID"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\d+\)")
_NESTED = re.compile(r"(STRUCT|MAP)\(.*\)|.*\[\]")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
# within a nested type: what would come back as something else, or not at all. A field of such a
# name is taken for the type, at no harm
_LOST = re.compile(
    r"\b(UHUGEINT|BIT|BIGNUM|ENUM|UNION|JSON|VARIANT|GEOMETRY|NULL|TIME_NS|TIMESTAMPTZ_NS"
    r"|TIME WITH TIME ZONE)\b|\[\d+\]"
)


def is_carried(type_: str) -> bool:
    """Say whether values of the engine's `type_`, as it writes it, come through Arrow whole."""
    if type_ in _AS_THEY_ARE or type_ in _CAST_BACK or _DECIMAL.fullmatch(type_):
        return True
    return _NESTED.fullmatch(type_) is not None and not (
        '"NULL"' in type_ or _LOST.search(_QUOTED.sub("", type_))
    )


def is_cast_back(type_: str) -> bool:
    """Say whether values of a type that is carried must be cast to it when they have arrived.

    >>> is_cast_back("HUGEINT"), is_cast_back("DECIMAL(38,0)")
    (True, False)
    """
    return type_ not in _AS_THEY_ARE and not _DECIMAL.fullmatch(type_)
