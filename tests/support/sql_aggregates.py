"""Queries over `t` that fragments compute, as SQL text, at random.

The answer of each is the same however often it is asked, but for the order of rows that it does not
name, and sums of floats in their last bits.
"""

from __future__ import annotations

import random

from tests.support.sql_tables import condition

_KEYS = [
    *("i", "l", "f", "d", "p", "day", "clock", "ts", "tz", "tn", "s", "b", "u", "raw", "fx"),
    *("st", "tags", "Mixed", '"a b"', "st.a", "st.deep.s", "t.s", "i % 3", "upper(s)"),
    *("date_trunc('month', day)", "extract(year FROM ts)", "ts::DATE", "coalesce(i, -5)"),
    *("CASE WHEN b THEN s ELSE 'z' END", "s IS NULL", "(i + l)::HUGEINT", "l > 7 AND b"),
    *("[i, 1]", "{'k': u, 'h': l::HUGEINT}", "time_bucket(INTERVAL 1 day, ts)"),
]
_NUMBERS = ["i", "l", "p", "f", "d", "id", "Mixed", "i + 1", "p * 2", "st.a", "length(s)", "st.r"]
_COMPARED = [
    *_NUMBERS,
    "s",
    "day",
    "ts",
    "tz",
    "tn",
    "clock",
    "u",
    "raw",
    "b",
    "wide",
    "tags",
    "st",
]
_WHOLE = ["i", "l", "id", "Mixed"]


def divided_query(rng: random.Random) -> str:
    """Return a query that has fragments, whose rows have an order only where it ends on LIMIT."""
    shapes = [*[_grouped] * 4, _wrapped, _compared, _first, _distinct, _rows]
    return rng.choice(shapes)(rng)


def _where(rng: random.Random, prefix: str = "") -> str:
    if rng.random() < 0.5:
        return ""
    return f" WHERE {condition(rng, rng.choice([0, 1]), prefix)}"


def _aggregate(rng: random.Random, distinct: str) -> str:
    made = rng.choice(
        [
            "count(*)",
            "count()",
            f"count({rng.choice(_COMPARED)})",
            f"sum({rng.choice(_NUMBERS)})",
            f"sum({rng.choice(_NUMBERS)})",
            f"avg({rng.choice(_NUMBERS)})",
            f"mean({rng.choice(_NUMBERS)})",
            f"min({rng.choice(_COMPARED)})",
            f"max({rng.choice(_COMPARED)})",
            f"min(DISTINCT {rng.choice(_COMPARED)})",
            "bool_and(b)",
            "bool_or(i > 1)",
            f"{rng.choice(['bit_and', 'bit_or', 'bit_xor'])}({rng.choice(_WHOLE)})",
            "count_if(b)",
            "sum(b::INT)",
            "any_value('x' || NULL)",
            f"count(DISTINCT {distinct})",
            f"count(DISTINCT {distinct})",
            "sum(CASE WHEN b THEN i END)",
            "sum(CASE WHEN s = 'a' THEN 1 ELSE 0 END)",
        ]
    )
    if rng.random() < 0.15 and "DISTINCT" not in made:
        made += f" FILTER (WHERE {condition(rng, 0)})"
    return made


def _computed(rng: random.Random, distinct: str) -> str:
    one = _aggregate(rng, distinct)
    number = rng.choice(["sum(i)", "avg(p)", "count(*)", "max(l)", "sum(p)", "avg(d)"])
    return rng.choice(
        [
            *[one] * 6,
            f"{number} / count(*)",
            f"round({rng.choice(['avg(id)', 'sum(p)', 'avg(i)'])}, 2)",
            f"{number} * 2",
            f"coalesce({number}, 0)",
            f"CASE WHEN count(*) > 2 THEN {number} ELSE 0 END",
            f"sum(i) // 2 + {number}",
            "sum(i) || '!'",
            "max(day) + INTERVAL 1 MONTH",
            "count(*) > 1 AND bool_or(b)",
            "'x'",
            "typeof(sum(i))",
            "{'n': count(*), 's': sum(l)}",
        ]
    )


def _grouped(rng: random.Random) -> str:
    distinct = rng.choice(_COMPARED)
    keys = [rng.choice(_KEYS) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    is_named = rng.random() < 0.5
    names = [f"k{at}" for at in range(len(keys))]
    shown = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    shown = shown if is_named else list(keys)
    aggregates = [_computed(rng, distinct) for _ in range(rng.randint(1, 4))]
    if keys and rng.random() < 0.1:
        aggregates = []
    items = [*shown, *aggregates]
    places = [str(at + 1) for at in range(len(keys))]
    by = rng.choice([keys, places, names if is_named else keys])
    group = ""
    if keys:
        group = f" GROUP BY {', '.join(by)}"
        if rng.random() < 0.2:
            group = " GROUP BY ALL"
    having = ""
    if rng.random() < 0.3:
        having = " HAVING " + rng.choice(
            ["count(*) > 1", "min(id) < 60", "sum(i) IS NOT NULL", "count(i) > 1 AND max(id) > 9"]
        )
    if is_named and keys and rng.random() < 0.2:
        having = " HAVING k0 IS NOT NULL"
    order = ""
    if keys and rng.random() < 0.4:
        directed = [
            f"{each}{rng.choice(['', ' DESC', ' ASC', ' NULLS FIRST', ' DESC NULLS LAST'])}"
            for each in rng.choice([places, by])
        ]
        order = f" ORDER BY {', '.join(directed)}"
        order += rng.choice(["", " LIMIT 4", " LIMIT 3 OFFSET 2"])
    elif aggregates and rng.random() < 0.1:
        order = " ORDER BY ALL"
    alias = rng.choice(["", " AS t", " t"])
    if not keys and rng.random() < 0.1:
        items = [item for item in items if item != "'x'"] or ["count(*)"]
        return f"SELECT {', '.join(items)} FROM t{_where(rng)}{having}"
    if not keys and all(item == "'x'" for item in items):
        items.append("count(*)")
    distinct_rows = "DISTINCT " if rng.random() < 0.05 and not order else ""
    return (
        f"SELECT {distinct_rows}{', '.join(items)} FROM t{alias}{_where(rng)}{group}{having}{order}"
    )


def _compared(rng: random.Random) -> str:
    """Return a query that compares its groups with each other."""
    key = rng.choice(["i", "s", "day", "upper(s)"])
    window = rng.choice(
        [
            "sum(count(*)) OVER ()",
            "100.0 * count(*) / sum(count(*)) OVER ()",
            "rank() OVER (ORDER BY count(*) DESC)",
            "max(sum(p)) OVER (PARTITION BY count(*) > 3)",
            f"row_number() OVER (ORDER BY {key})",
            f"count(*) - lag(count(*)) OVER (ORDER BY {key})",
        ]
    )
    by = rng.choice([key, "1", "k"])
    order = rng.choice(["", f" ORDER BY {window} DESC, 1 LIMIT 3"])
    return f"SELECT {key} AS k, {window}, sum(p) FROM t{_where(rng)} GROUP BY {by}{order}"


def _wrapped(rng: random.Random) -> str:
    """Return a query around others."""
    inner = f"SELECT id, i AS x, s, upper(s) AS big, p * 2 AS dear, day FROM t{_where(rng)}"
    grouped = (
        "SELECT x, count(*) AS n, sum(dear), avg(q.id) FROM {} q"
        + rng.choice(["", " WHERE x > 0", " WHERE q.s <> 'a'"])
        + " GROUP BY x"
    )
    match rng.randint(0, 4):
        case 0:
            return grouped.format(f"({inner})")
        case 1:
            return f"WITH w AS ({inner}) " + grouped.format("w")
        case 2:
            return f"WITH w AS ({inner}), v AS (SELECT * FROM w WHERE big <> 'AB') " + (
                grouped.format("v")
            )
        case 3:
            around = grouped.format(f"({inner})")
            return f"SELECT n, count(*), max(x) FROM ({around}) g WHERE n > 0 GROUP BY n"
        case _:
            around = grouped.format(f"({inner})")
            return f"WITH g AS ({around}) SELECT a.x, b.n FROM g a JOIN g b ON a.x = b.x"


def _first(rng: random.Random) -> str:
    by = rng.choice([*_COMPARED, "upper(s)", "i % 3", "2", "x", "date_trunc('year', day)"])
    direction = rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST"])
    items = rng.choice(["id, i AS x", "id, s AS x, t.*", "id, l + 1 AS x, u, st", "id, d x, tags"])
    limit = rng.choice([" LIMIT 5", " LIMIT 0", " LIMIT 7 OFFSET 3", " LIMIT 1000"])
    return f"SELECT {items} FROM t{_where(rng)} ORDER BY {by}{direction}, id{limit}"


def _distinct(rng: random.Random) -> str:
    items = rng.sample(_KEYS, rng.randint(1, 2))
    order = rng.choice(["", "", " ORDER BY ALL", " ORDER BY ALL DESC LIMIT 3"])
    return f"SELECT DISTINCT {', '.join(items)} FROM t{_where(rng)}{order}"


def _rows(rng: random.Random) -> str:
    items = rng.choice(["*", "id, i + 1, upper(s)", "id AS x, st.a, p / 3", "t.*, 1"])
    text = f"SELECT {items} FROM t{_where(rng)}"
    if rng.random() < 0.3:
        return f"SELECT * FROM ({text}) q"
    return text
