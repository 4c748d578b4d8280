"""Queries to ask of a lake: those of other tests' generators, and such as take each of the roads.

Texts are marked as `tests.support.sql_floats` marks them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.sql_aggregates import divided_query
from tests.support.sql_floats import as_written, by_ieee, marked
from tests.support.sql_queries import query
from tests.support.sql_tables import COLUMNS, condition

_ORDERED = re.compile(r"ORDER BY [^()]*LIMIT \d+( OFFSET \d+)?$")
_NOT_DIVIDED = ", ".join(
    f"{name} AS (SELECT * FROM {name} WHERE 1 IN (SELECT 1))" for name in ("t", "u")
)
_OWN_TABLES = re.compile(r"\b[tu] AS \(")


@dataclass(frozen=True)
class Question:
    """A query whose answer is the same rows each time.

    Where `limit` is given, any so many of the rows will do, and `marked_text` asks for all.
    `parameters` are the values of $1, $2 and so on.
    """

    marked_text: str
    parameters: tuple[Any, ...] = ()
    limit: int | None = None

    @property
    def text(self) -> str:
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return as_written(self.marked_text) + limit

    @property
    def reference(self) -> str:
        """The query for DuckDB by itself."""
        return by_ieee(self.marked_text)

    @property
    def has_order(self) -> bool:
        return self.limit is None and _ORDERED.search(self.text) is not None

    @property
    def undivided(self) -> str | None:
        """The query over tables that no engine may divide; None where it has such of its own."""
        if _OWN_TABLES.search(self.text):
            return None
        if self.text.startswith("WITH RECURSIVE"):
            return None
        if self.text.startswith("WITH "):
            return f"WITH {_NOT_DIVIDED}, {self.text.removeprefix('WITH ')}"
        return f"WITH {_NOT_DIVIDED} {self.text}"


def question(rng: random.Random) -> Question:
    if rng.random() < 0.25:
        return rng.choice([_scan, _scan, _projection])(rng)
    if rng.random() < 0.3:
        return Question(query(rng))
    if rng.random() < 0.3:
        return Question(divided_query(rng))
    made = rng.choice(_OWN)(rng)
    return Question(made) if isinstance(made, str) else made


def _where(rng: random.Random, depth: int = 1, prefix: str = "") -> str:
    if rng.random() < 0.2:
        return ""
    return f" WHERE {condition(rng, rng.randint(0, depth), prefix)}"


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


_NAMES = list(map(_quoted, COLUMNS))


def _scan(rng: random.Random) -> Question:
    items = "*" if rng.random() < 0.3 else ", ".join(rng.sample(_NAMES, rng.randint(1, 6)))
    limit = rng.choice([None, None, 0, 1, 5, 40, 1000])
    return Question(f"SELECT {items} FROM t{_where(rng, rng.choice([0, 0, 1]))}", limit=limit)


def _projection(rng: random.Random) -> Question:
    items = [
        rng.choice([f"{name} AS c{at}", name, f"t.{name} AS {rng.choice(['id', 'x'])}{at}"])
        for at, name in enumerate(rng.choices(_NAMES, k=rng.randint(1, 4)))
    ]
    items.append(
        rng.choice(["st.a", "st.deep.s", "id AS again", "st.Deep AS deeper", "t.st.r AS z"])
    )
    rng.shuffle(items)
    limit = rng.choice([None, None, 3, 50])
    return Question(
        f"SELECT {', '.join(items)} FROM t{_where(rng, rng.choice([0, 0, 1]))}", limit=limit
    )


def _count(rng: random.Random) -> str:
    counted = rng.choice(["count(*)", "count(*) AS n, count(1)", "count(id)", "count(i)"])
    return f"SELECT {counted} FROM t{_where(rng, 0)}"


def _expression(rng: random.Random) -> str:
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    number = rng.choice(["i", "l", "f", "d", "p", "st.r", "wide"])
    other = rng.choice(["d", "f", "1", "2.5e0", "'nan'::DOUBLE", "i", "0"])
    return rng.choice(
        [
            *("i::VARCHAR", "TRY_CAST(s AS INT)", "strftime(ts, '%Y-%m')", "d::VARCHAR", "-f"),
            *("round(d, 1)", "greatest(f, d)", 'coalesce(s, "a b")', "st.a + 1", "len(tags)"),
            *("list_contains(tags, 'a')", "s || '!'", "i // 2", "i % 3", "l / 7", "epoch(ts)"),
            *("day + 1", "ts - INTERVAL 1 DAY", "md5(s)", "u::VARCHAR", "d + f", "p * 1.5"),
            *("wide / 2", "isnan(d)", "tz::DATE", "extract(hour FROM tz)", "tn::TIMESTAMP"),
            *("date_trunc('month', tz)", "length(raw)", "hex(fx)", "b AND s IS NULL", "n IS NULL"),
            *('[s, "a b"]', "{'x': i, 'y': st}", "tags[1]", "substr(s, 2)", "s LIKE 'a%'"),
            *("i IN (1, 7, NULL)", "ifnull(i, 3)", "clock::VARCHAR", "day - DATE '2024-07-01'"),
            *("floor(d)", "try_cast(d AS INT)", "try_cast(l AS INT)", "abs(p)", "sign(f)"),
            *("s::INT", "l + l", "i + 1", "s::DATE", "-i", "d::INT", "1 / i", "sqrt(d)", "ln(f)"),
            marked(sign, number, other),
            marked("nullif", number, other),
            marked("case", number, other, "s"),
            marked("between", number, "0", other),
            f"CASE WHEN {marked(sign, number, other)} THEN s WHEN i > 1 THEN 'y' END",
            f"({marked(sign, number, other)}) IS NOT TRUE",
        ]
    )


def _rowwise(rng: random.Random) -> str:
    items = [f"{_expression(rng)} AS c{at}" for at in range(rng.randint(1, 4))]
    if rng.random() < 0.5:
        items.insert(0, "id")
    return f"SELECT {', '.join(items)} FROM t{_where(rng)}"


def _of_expressions(rng: random.Random) -> str:
    """Return aggregates of expressions by an expression."""
    key, one, other = (_expression(rng) for _ in range(3))
    made = rng.choice([f"min({one})", f"max({one})", f"count({one})", f"count(DISTINCT {one})"])
    also = rng.choice(["count(*)", f"max({other})", "sum(i)", "sum(d)", "avg(p)", "avg(d)"])
    return f"SELECT {key} AS k, {made}, {also} FROM t{_where(rng)} GROUP BY k"


def _windowed(rng: random.Random) -> str:
    function, frame = rng.choice(
        [
            ("sum(i)", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
            ("sum(d)", ""),
            ("avg(p)", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"),
            ("max(d)", " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING"),
            ("lag(s)", ""),
            ("lead(l, 2, 0)", ""),
            ("first_value(day)", ""),
            ("last_value(i)", ""),
            ("nth_value(s, 2)", ""),
            ("ntile(4)", ""),
            ("rank()", ""),
            ("dense_rank()", ""),
            ("row_number()", ""),
            ("cume_dist()", ""),
            ("count(*)", ""),
        ]
    )
    part = rng.choice(["", "PARTITION BY b ", "PARTITION BY s ", "PARTITION BY i % 3 "])
    key = rng.choice(["i", "d", "f DESC", "day NULLS FIRST", "s DESC", "tn", "st.a", "u", "raw"])
    window = f"{function} OVER ({part}ORDER BY {key}, id{frame})"
    last = rng.choice(["", "", f" QUALIFY {window} IS NOT NULL", " ORDER BY id LIMIT 9"])
    return f"SELECT id, {window} AS w FROM t{_where(rng)}{last}"


def _other(rng: random.Random) -> str:
    where, test = _where(rng), condition(rng, 1)
    also = condition(rng, 0, "y.")
    doubles = f"(SELECT y.d FROM u y WHERE {also})"
    return rng.choice(
        [
            f"SELECT b, s, count(*), sum(p) FROM t{where} GROUP BY ROLLUP (b, s)",
            f"SELECT b, i, max(day) FROM t{where} GROUP BY GROUPING SETS ((b), (i), ())",
            f"SELECT DISTINCT ON (s) s, id FROM t{where} ORDER BY s, id",
            f"SELECT id, (SELECT max(i) FROM u y WHERE y.s = t.s AND {also}) AS m FROM t{where}",
            f"SELECT id, i FROM t{where} UNION ALL SELECT id, i FROM u ORDER BY 1, 2 LIMIT 6",
            f"SELECT s FROM t{where} INTERSECT SELECT s FROM u",
            f"SELECT s, d FROM t EXCEPT SELECT s, d FROM t{where}",
            f"SELECT f, d FROM t{where} UNION SELECT f, d FROM u",
            f"SELECT i, median(p), max(s), list_sort(list(id)) FROM t{where} GROUP BY i",
            f"SELECT x.k, x.n, y.n FROM (SELECT s AS k, count(*) AS n FROM t{where} GROUP BY s) x"
            " FULL JOIN (SELECT s AS k, count(*) AS n FROM u GROUP BY s) y ON x.k = y.k",
            f"SELECT unnest(tags) AS tag, count(*) FROM t{where} GROUP BY 1",
            f"SELECT count(*) FROM (SELECT DISTINCT i, s FROM t{where})",
            f"SELECT id FROM t WHERE ({test}) = ({condition(rng, 0)})",
            f"SELECT ({test}) AS c, count(*) FROM t GROUP BY 1",
            f"SELECT count(*) FILTER (WHERE {test}), sum(i) FILTER (WHERE b) FROM t{where}",
            f"SELECT x.id, y.id FROM t x JOIN u y ON {marked('=', 'x.d', 'y.f')} AND {also}",
            f"SELECT x.id, y.id FROM t x LEFT JOIN u y ON {marked('<', 'x.d', 'y.d')} AND {also}",
            f"SELECT id FROM t WHERE {marked('in query', 'd', '(SELECT f FROM u)')}",
            f"SELECT id FROM t WHERE {marked('not in query', 'd', doubles)}",
            f"SELECT id FROM t WHERE {marked('>= all', 'd', doubles)}",
        ]
    )


def _with_parameters(rng: random.Random) -> Question:
    compared: list[tuple[str, list[Any]]] = [
        ("i", [0, 7, -1, 2**31 - 1]),
        ("l", [7, 2**53 + 1, -(2**63)]),
        ("d", [0.1, 2.5, float("inf"), 1e300]),
        ("p", [0, 1, 2.5]),
        ("s", ["a", "ab", "it's", "a%b", ""]),
        ('"a b"', ["x", ""]),
    ]
    column, values = rng.choice(compared)
    sign = rng.choice(["=", "<>", "<", ">=", "IS DISTINCT FROM"])
    value = rng.choice(values)
    if isinstance(value, str) or sign == "IS DISTINCT FROM":
        test = f"{column} {sign} $1"
    else:
        test = marked(sign, column, "$1")
    joint = rng.choice(["AND", "OR"])
    text = f"FROM t WHERE ({test}) {joint} id < $2"
    items = rng.choice(["id, s", "*", "id AS x, st.a", "count(*), max(day)", "upper(s), i + 1"])
    parameters = (rng.choice([value, value, value, None]), rng.randint(0, 60))
    return Question(f"SELECT {items} {text}", parameters)


_OWN: list[Callable[[random.Random], str | Question]] = [
    _count,
    _rowwise,
    _rowwise,
    _of_expressions,
    _windowed,
    _other,
    _other,
    _with_parameters,
]
