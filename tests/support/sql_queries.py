"""Queries of every shape over the tables of `tests.support.sql_tables`, as SQL text that is marked
as its conditions are.

The answer of each is the same however often it is asked: what would depend on the order of rows,
or of adding them up, is left out.
"""

from __future__ import annotations

import random

from tests.support.sql_floats import marked
from tests.support.sql_tables import condition

TABLES = ("t", "u")
_KEYS = ["i", "l", "s", "day", "p", "Mixed", "b", "d"]
_FLOATS = ["d", "f", "st.r", "d + 1", "f / 2", "d / 0", "-f", "i / 2", "i", "d::FLOAT"]
_JOINS = [
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT OUTER JOIN",
    "SEMI JOIN",
    "ANTI JOIN",
]


def query(rng: random.Random) -> str:
    return rng.choice(
        [
            *[_joined, _joined, _joined, _nested, _with, _united, _grouped, _windowed, _limited],
            *[_using, _wrapped, _wrapped, _compared, _compared],
        ]
    )(rng)


def _where(rng: random.Random, *prefixes: str) -> str:
    """Return a WHERE on tables of the prefixes, or none; each has its part in every AND and OR."""
    parts = [condition(rng, rng.choice([0, 0, 1]), rng.choice(prefixes)) for _ in range(3)]
    joints = [rng.choice(["AND", "AND", "OR"]) for _ in parts]
    chain = parts[0]
    for joint, part in list(zip(joints, parts, strict=True))[1 : rng.randint(1, 3)]:
        chain = f"({chain}) {joint} {part}" if rng.random() < 0.5 else f"{chain} {joint} {part}"
    return f" WHERE {chain}" if rng.random() < 0.9 else ""


def _on(rng: random.Random, left: str, right: str) -> str:
    key = rng.choice(_KEYS)
    condition_ = _equal(f"{left}{key}", f"{right}{key}")
    for _ in range(rng.choice([0, 1, 1, 2])):
        condition_ += f" AND {condition(rng, rng.choice([0, 0, 1]), rng.choice([left, right]))}"
    return condition_


def _equal(left: str, right: str) -> str:
    return marked("=", left, right) if left.endswith(".d") else f"{left} = {right}"


def _joined(rng: random.Random) -> str:
    sources = f"{rng.choice(TABLES)} AS x"
    shown = ["x."]
    for alias in ("y", "z")[: rng.choice([1, 1, 2])]:
        kind = rng.choice(_JOINS)
        table = rng.choice(TABLES)
        if rng.random() < 0.1:
            sources += f", {table} AS {alias}"
        elif rng.random() < 0.05:
            sources += f" ASOF JOIN {table} AS {alias} ON x.b = {alias}.b AND x.id >= {alias}.id"
        else:
            left = rng.choice(shown)
            sources += f" {kind} {table} AS {alias} ON {_on(rng, left, f'{alias}.')}"
        if kind not in ("SEMI JOIN", "ANTI JOIN") or f", {table} AS {alias}" in sources:
            shown.append(f"{alias}.")
    items = ", ".join(f"{p}id, {p}{rng.choice(_KEYS)}" for p in shown)
    if rng.random() < 0.2:
        items = rng.choice(["count(*)", "x.*", "count(x.i), max(x.day)", "*"])
    return f"SELECT {items} FROM {sources}{_where(rng, *shown)}"


def _nested(rng: random.Random) -> str:
    inner = condition(rng, rng.choice([0, 1]), "v.")
    outer = condition(rng, rng.choice([0, 1]), "w.")
    key = rng.choice(_KEYS)
    table, other = rng.choice(TABLES), rng.choice(TABLES)
    equal = _equal(f"v.{key}", f"w.{key}")
    listed = f"(SELECT v.{key} FROM {other} v WHERE {inner})"
    in_query = [f"w.{key} IN {listed}", f"w.{key} NOT IN {listed}"]
    if key == "d":
        in_query = [marked(f"{each}in query", "w.d", listed) for each in ("", "not ")]
    test = rng.choice(
        [
            f"EXISTS (SELECT 1 FROM {other} v WHERE {equal} AND {inner})",
            f"EXISTS (SELECT * FROM {other} v WHERE {inner} OFFSET 1)",
            f"NOT EXISTS (SELECT 1 FROM {other} v WHERE {equal} AND {inner})",
            *in_query,
            f"(SELECT count(*) FROM {other} v WHERE v.id < w.id AND {inner}) > 1",
            f"w.id = (SELECT max(id) FROM {other} v WHERE {inner})",
        ]
    )
    joint = rng.choice(["AND", "OR"])
    return f"SELECT w.id, w.{key} FROM {table} w WHERE {outer} {joint} {test}"


def _with(rng: random.Random) -> str:
    first = f"SELECT * FROM {rng.choice(TABLES)}{_where(rng, '')}"
    second = f"SELECT id, i, s FROM {rng.choice(['a', 't'])}{_where(rng, '')}"
    wider = rng.choice(["TRUE", "id > 3"])
    last = rng.choice(
        [
            "SELECT a.id, b.id FROM a JOIN b ON a.i = b.i",
            f"SELECT p.id, q.id FROM a p LEFT JOIN a q ON p.i = q.i{_where(rng, 'p.', 'q.')}",
            f"SELECT a.id, u.id FROM a, u WHERE a.s = u.s AND {condition(rng, 0, 'u.')}",
            f"SELECT id FROM (SELECT * FROM b) c WHERE c.i > 0 AND {wider}",
        ]
    )
    if rng.random() < 0.3:  # one that hides a table
        first, last = first.replace("FROM u", "FROM t"), "SELECT a.id, u.id FROM a, u"
        return f"WITH a AS ({first}), u AS ({second}) {last} WHERE a.i = u.i"
    return f"WITH a AS ({first}), b AS ({second}) {last}"


def _united(rng: random.Random) -> str:
    joint = rng.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "UNION ALL BY NAME"])
    columns = rng.choice(["id, i", "s, b", "*", "id AS i, i AS id"])
    sides = [f"SELECT {columns} FROM {rng.choice(TABLES)}{_where(rng, '')}" for _ in range(2)]
    return f" {joint} ".join(sides)


def _grouped(rng: random.Random) -> str:
    key = rng.choice(_KEYS)
    having = rng.choice(["", " HAVING count(*) > 1", " HAVING min(id) < 10"])
    aggregates = "count(*), count(DISTINCT s), min(day), max(l), sum(i), bool_or(b)"
    return f"SELECT {key}, {aggregates} FROM t{_where(rng, '')} GROUP BY {key}{having}"


def _windowed(rng: random.Random) -> str:
    window = f"row_number() OVER (PARTITION BY {rng.choice(_KEYS)} ORDER BY id)"
    inner = f"SELECT *, {window} AS n2 FROM t{_where(rng, '')}"
    if rng.random() < 0.5:
        return f"SELECT id, n2 FROM ({inner}) w{_where(rng, 'w.')}"
    return f"SELECT id, s FROM t{_where(rng, '')} QUALIFY {window} = 1"


def _limited(rng: random.Random) -> str:
    inner = f"SELECT * FROM t{_where(rng, '')} ORDER BY id LIMIT {rng.randint(0, 9)}"
    return f"SELECT id, i FROM ({inner}) w{_where(rng, 'w.')}"


def _using(rng: random.Random) -> str:
    key = rng.choice(["i", "s", "b"])
    kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    test = rng.choice([f"{key} IS NULL", f"{key} IS NOT NULL", "TRUE"])
    where = f"{condition(rng, 0, rng.choice(['x.', 'y.']))} {rng.choice(['AND', 'OR'])} {test}"
    return f"SELECT x.id, y.id, {key} FROM t x {kind} u y USING ({key}) WHERE {where}"


def _wrapped(rng: random.Random) -> str:
    """Return a query around one whose rows are those of its table, or nearly."""
    all_of_it = rng.choice(["*", "x.*", "id, i, s AS day, day AS s, l, b, st, ts, tz, f, d, p"])
    inner = f"SELECT {all_of_it} FROM {rng.choice(TABLES)} AS x{_where(rng, 'x.')}"
    inner += rng.choice(["", "", "", "", " ORDER BY id", " ORDER BY id LIMIT 7"])
    if rng.random() < 0.2:
        inner = inner.replace("SELECT ", "SELECT DISTINCT ", 1).replace(" ORDER BY id", "")
    if rng.random() < 0.3:
        inner = f"SELECT * FROM ({inner}) v{_where(rng, 'v.')}"
    read, given = f"({inner})", ""
    if rng.random() < 0.4:
        read, given = "t", f"WITH t AS ({inner}) "
    other = f"{rng.choice(_JOINS)} u AS z ON {_on(rng, 'w.', 'z.')}"
    if rng.random() < 0.4:
        shown = "w.id, z.id" if "SEMI" not in other and "ANTI" not in other else "w.id"
        return f"{given}SELECT {shown} FROM {read} AS w {other}{_where(rng, 'w.')}"
    if rng.random() < 0.2:
        joined = f"u AS z LEFT JOIN {read} AS w ON w.i = z.i"
        return f"{given}SELECT w.id, z.i FROM {joined}{_where(rng, 'w.')}"
    prefix = rng.choice(["", "w."])
    return f"{given}SELECT id, i FROM {read} AS w{_where(rng, prefix)}"


def _compared(rng: random.Random) -> str:
    """Return a query that is about comparisons of floats, wherever one can stand."""
    read = rng.choice(
        [
            "t x",
            "u x",
            "(SELECT * FROM t) x",
            "(SELECT id, d AS f, f AS d, i, b, st FROM u) x",
            "(SELECT id, d + 1 AS d, max(f) AS f, max(i) AS i, b, any_value(st) AS st"
            " FROM t GROUP BY ALL) x",
            "(SELECT id, d, f, i, b, st FROM t UNION ALL SELECT id, i, d, 7, b, st FROM u) x",
        ]
    )
    place = rng.randint(0, 6)
    # a query within is no longer the same where it stands again: each reads an input of its own
    test = _float_test(rng, with_queries=place != 3)
    if rng.random() < 0.3:
        other = _float_test(rng, with_queries=place != 3)
        test = f"{rng.choice(['NOT ', ''])}({test} {rng.choice(['AND', 'OR'])} {other})"
    match place:
        case 0 | 1:
            return f"SELECT id FROM {read} WHERE {test}"
        case 2:
            return f"SELECT id, {test} AS answer FROM {read}"
        case 3:
            return f"SELECT {test} AS answer, count(*) FROM {read} GROUP BY {test} HAVING {test}"
        case 4:
            return f"SELECT b, count(*) FILTER (WHERE {test}) FROM {read} GROUP BY b"
        case 5:
            sign, other = rng.choice(["<", ">", "=", "<>"]), rng.choice(["min(f)", "1"])
            having = marked(sign, "max(d)", other)
            items = f"b, max(d), CASE WHEN {having} THEN 1 END"
            return f"SELECT {items} FROM {read} GROUP BY b HAVING {having}"
        case _:
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN"])
            sign = rng.choice(["=", "<", ">="])
            on = marked(sign, f"x.{rng.choice(['d', 'f'])}", f"y.{rng.choice(['d', 'f', 'i'])}")
            shown = "x.id, x.d" if kind == "SEMI JOIN" else "x.id, x.d, y.id"
            return f"SELECT {shown} FROM {read} {kind} t y ON {on} AND x.id + y.id < 20"


def _float_test(rng: random.Random, with_queries: bool) -> str:
    left, right, third = (f"x.{rng.choice(_FLOATS)}" for _ in range(3))
    left, right, third = (each.replace("x.-", "-x.") for each in (left, right, third))
    constant = rng.choice(["1", "2.5e0", "NULL", "'nan'", "'nan'::DOUBLE", "'-inf'::DOUBLE", "0.1"])
    right = rng.choice([right, right, constant])
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    query = (
        f"(SELECT {rng.choice(['y.', '', 'd + y.'])}{rng.choice(['d', 'f', 'i'])} FROM u y"
        f" WHERE y.id {rng.choice(['< 4', '> 100', '< x.id', '= x.id', '< 9 AND isnan(y.d)'])})"
    )
    scalar = f"(SELECT max(y.{rng.choice(['d', 'f', 'i'])}) FROM u y WHERE y.id = x.id)"
    negation = rng.choice(["", "not "])
    within = [
        *[marked(f"{negation}in query", left, query)] * 2,
        marked(f"{sign} any", left, query),
        marked(f"{sign} all", left, query),
        marked(sign, left, scalar),
        marked(sign, scalar, left),
    ]
    tests: list[str] = [
        *(within if with_queries else ()),
        *[marked(sign, left, right)] * 3,
        marked(sign, right, left),
        marked(f"{negation}in", left, right, third),
        marked(f"{negation}between", left, right, third),
        f"{marked('nullif', left, right)} IS NULL",
        f"{marked('case', left, right, '1')} IS NULL",
        f"({marked(sign, left, right)}) IS NULL",
        marked(sign, f"CASE WHEN {marked(sign, left, right)} THEN {left} ELSE 1e0 END", third),
    ]
    return rng.choice(tests)
