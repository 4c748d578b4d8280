"""Answers queries in SQL: checks them, finds their road, plans their scans and seals tickets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import FloebergError, UnsupportedSql
from floeberg.protocol.requests import current_request
from floeberg.protocol.sql_tickets import InputEndpoint, SqlInput, encode_rows
from floeberg.protocol.types import Json
from floeberg.server.access import Caller
from floeberg.server.fleet import Worker
from floeberg.server.flight.endpoints import Endpoint, PlannedScan
from floeberg.server.flight.queries import Computed, Placed, Queries, Query
from floeberg.server.flight.scans import IsCancelled, ScanAnswer, Scans, TableScan, nobody_leaves
from floeberg.server.planning import count_tasks
from floeberg.server.sql.described import DESCRIBED, describe_rows, describe_table
from floeberg.server.sql.explained import EXPLAINED, explain_route
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session, Version
from floeberg.server.sql.occurrences import find_tables
from floeberg.server.sql.parameters import Parameter, value_of
from floeberg.server.sql.remembered import Remembered
from floeberg.server.sql.roads import Merge, Road, Route, find_route, in_one_endpoint
from floeberg.server.sql.session_values import with_session_values
from floeberg.server.sql.sessions import SessionOptions
from floeberg.server.sql.showing import show, shown_schema
from floeberg.server.sql.statement_time import with_statement_time
from floeberg.server.sql.statements import Kind, Statement, parse_statement
from floeberg.server.sql.tables import Tables, scans_of
from floeberg.server.sql.written_names import named_as_written

logger = logging.getLogger(__name__)

_LABEL_CHARACTERS = 200


class SqlStatements:
    """What stands behind a coordinator's Flight SQL. Safe to use from several threads."""

    def __init__(self, scans: Scans) -> None:
        self._queries = Queries(scans)
        self._now_ms = scans.now_ms

    def schema(
        self, sql: str, parameters: pa.RecordBatch | None, session: SessionOptions, caller: Caller
    ) -> pa.Schema:
        """Return the schema of the rows; nothing is planned or computed. Parameters that are not
        bound yet are taken for NULL."""
        known = _session(session, caller)
        with _telling(caller):
            statement = self._asked(sql, parameters, known, caller, unbound_are_null=True)
        if statement.explained:
            return EXPLAINED
        if statement.kind is Kind.DESCRIBE:
            return DESCRIBED
        if statement.kind is not Kind.QUERY:
            return shown_schema(statement.kind)
        with self._queries.looking(_label(statement), caller, nobody_leaves, "schema") as query:
            return find_route(statement, known, Tables(query)).schema

    def parameter_schema(self, sql: str, session: SessionOptions, caller: Caller) -> pa.Schema:
        """Return a field for each parameter, called by its number; which type it takes is not
        known."""
        return pa.schema(
            [(str(number + 1), pa.null()) for number in range(_parsed(sql).parameters)]
        )

    def info(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: SessionOptions,
        caller: Caller,
        is_cancelled: IsCancelled,
        *,
        one_endpoint: bool = False,
    ) -> ScanAnswer:
        """Plan the query and return its endpoints: just `one_endpoint`, without locations, for
        clients that read no other.

        Raises what is wrong with the statement, and what planning its scans raises.
        """
        known = _session(session, caller)
        with _telling(caller):
            statement = self._asked(sql, parameters, known, caller)
        if statement.explained:
            return self._explained(statement, known, caller, is_cancelled)
        if statement.kind is not Kind.QUERY:
            return self._looked_up(statement, known, caller, is_cancelled)
        with self._queries.planning(_label(statement), caller, is_cancelled) as query:
            route = find_route(statement, known, Tables(query))
            if one_endpoint:
                route = in_one_endpoint(route)
            answer = _answer(query, route, known.zone.name)
            if one_endpoint:
                # its ticket is redeemed at the coordinator, which has a worker do it
                endpoints = tuple(replace(one, locations=()) for one in answer.endpoints)
                answer = replace(answer, endpoints=endpoints)
        logger.info(
            "query planned",
            extra={
                "road": str(route.road),
                "tables": [one.source.label for one in route.sources],
                "principal": caller.principal,
                "endpoints": len(answer.endpoints),
                "seconds": round(query.run.progress.seconds, 3),
            },
        )
        return answer

    def _asked(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: Session,
        caller: Caller,
        *,
        unbound_are_null: bool = False,
    ) -> Statement:
        """Return a statement with values for its parameters, for what the session decides, and for
        the time, which is now."""
        statement = _bound(sql, parameters, session, caller, unbound_are_null=unbound_are_null)
        return with_statement_time(statement, self._now_ms() * 1000, session.zone)

    def _explained(
        self, statement: Statement, session: Session, caller: Caller, is_cancelled: IsCancelled
    ) -> ScanAnswer:
        if statement.analyzed:
            raise UnsupportedSql(
                "EXPLAIN ANALYZE is not served: EXPLAIN shows the plan, and the status pages of"
                " coordinator and workers what a query does"
            )
        with self._queries.looking(_label(statement), caller, is_cancelled, "explain") as query:
            route = find_route(statement, session, Tables(query))
            planned = query.plan(scans_of([one.source for one in route.sources]))
            return _told(query, explain_route(route, planned))

    def _looked_up(
        self, statement: Statement, session: Session, caller: Caller, is_cancelled: IsCancelled
    ) -> ScanAnswer:
        """Return the answer to SHOW or DESCRIBE."""
        with self._queries.looking(_label(statement), caller, is_cancelled, "sql") as query:
            if statement.kind is Kind.DESCRIBE:
                return _told(query, _description(statement, session, Tables(query)))
            return _told(query, show(statement, session, caller, query.is_cancelled))


def _description(statement: Statement, session: Session, tables: Tables) -> pa.Table:
    if isinstance(statement.tree, exp.Table):
        return describe_table(tables.schema(session.reference(statement.tree)))
    route = find_route(replace(statement, kind=Kind.QUERY), session, tables)
    return describe_rows(route.schema)


def _answer(query: Query, route: Route, timezone: str) -> ScanAnswer:
    if route.counted is None:
        query.admit()  # what metadata counts needs no worker
    scans = scans_of([one.source for one in route.sources])
    if route.road is Road.SCAN:
        return query.answer_scan(scans[0])
    planned = query.plan(scans)
    if route.road is Road.ENGINE:
        parts = [tuple(p.endpoint for p in one) for one in query.all_placed(planned)]
        endpoints = [query.statement(_computed(query, route, parts), timezone)]
    else:
        endpoints = _in_fragments(query, route, planned[0], timezone)
    return query.answer(route.schema, endpoints, _described(route, planned))


def _in_fragments(
    query: Query, route: Route, planned: PlannedScan, timezone: str
) -> list[Endpoint]:
    """Return the endpoints of a statement that is computed of each endpoint of a scan by itself."""
    if route.counted is not None:
        known = count_tasks(planned.plan.tasks)
        if known.is_exact:
            numbers = [pa.array([known.rows], field.type) for field in route.schema]
            return [query.told(_rows(pa.Table.from_arrays(numbers, schema=route.schema)))]
        planned = replace(planned, plan=replace(planned.plan, tasks=known.to_read))
        parts_of = route.counted.fragments(route.sources[0].name, known.rows)
        counts = Merge(parts_of.merge or "", parts_of.name, pa.schema([("c0", pa.int64())]))
        route = replace(route, sql=parts_of.fragment, merge=counts)
    shares = _by_worker(query.placed(planned))
    statements = [_computed(query, route, [endpoints]) for endpoints, _ in shares]
    merge = route.merge
    if merge is None:
        return [
            query.fragment(statement, workers, timezone)
            for statement, (_, workers) in zip(statements, shares, strict=True)
        ]
    parts = tuple(
        query.part(replace(statement, schema=merge.schema), workers, timezone)
        for statement, (_, workers) in zip(statements, shares, strict=True)
    )
    merging = Computed(merge.sql, route.schema, (SqlInput(merge.name, merge.schema, parts),))
    return [query.statement(merging, timezone)]


def _by_worker(
    placed: Sequence[Placed],
) -> list[tuple[tuple[InputEndpoint, ...], tuple[Worker, ...]]]:
    """Return the endpoints that each worker is the first choice for, and who may read them: one
    statement reads all of them, several at once."""
    shares: dict[Worker, list[Placed]] = {}
    for one in placed:
        shares.setdefault(one.workers[0], []).append(one)
    return [(tuple(one.endpoint for one in share), share[0].workers) for share in shares.values()]


def _computed(
    query: Query, route: Route, endpoints: Sequence[tuple[InputEndpoint, ...]]
) -> Computed:
    """Return the statement of a route; `endpoints` are those of its scans."""
    left = iter(endpoints)
    inputs = []
    for one in route.sources:
        if isinstance(one.source, TableScan):
            inputs.append(SqlInput(one.name, one.source.schema, next(left)))
        else:
            rows = encode_rows(one.source.read(query))
            inputs.append(SqlInput(one.name, one.source.schema, rows=rows))
    return Computed(route.sql, route.schema, tuple(inputs))


def _told(query: Query, rows: pa.Table) -> ScanAnswer:
    """Return the answer whose rows are known already."""
    return query.answer(rows.schema, [query.told(_rows(rows))], dump_json(_request_id()))


def _rows(rows: pa.Table) -> Computed:
    return Computed("", rows.schema, (SqlInput("i0", rows.schema, rows=encode_rows(rows)),))


def _described(route: Route, planned: list[PlannedScan]) -> bytes:
    told: dict[str, Json] = {"road": str(route.road), **_request_id()}
    told["tables"] = list(dict.fromkeys(one.table.name for one in planned))
    return dump_json(told)


def _request_id() -> dict[str, Json]:
    request = current_request()
    return {"request_id": None if request is None else request.request_id}


@contextmanager
def _telling(caller: Caller) -> Iterator[None]:
    """Log what the block refuses: who sends writes and second statements is of interest. The text
    is not logged, which may have values in it."""
    try:
        yield
    except FloebergError as error:
        logger.info("statement refused", extra={"principal": caller.principal, "code": error.code})
        raise


# --- what was asked ------------------------------------------------------------------------------


_PARSED: Remembered[str, Statement] = Remembered()


def _parsed(sql: str) -> Statement:
    return _PARSED.get(sql, len(sql), lambda: named_as_written(parse_statement(sql), sql))


def _bound(
    sql: str,
    parameters: pa.RecordBatch | None,
    session: Session,
    caller: Caller,
    *,
    unbound_are_null: bool = False,
) -> Statement:
    """Return a statement with values for its parameters, and for what the session decides."""
    statement = _parsed(sql)
    values: list[Parameter] = []
    if parameters is not None:
        values = [value_of(column[0]) for column in parameters.columns]
    elif unbound_are_null:
        values = [None] * statement.parameters
    return with_session_values(statement.bind(values), session, caller.principal)


def _session(options: SessionOptions, caller: Caller) -> Session:
    """Return what a session says, for `caller`'s catalogs."""
    return Session(
        catalogs=caller.catalogs.names,
        catalog=options.catalog or caller.catalogs.default.name,
        schema=tuple(options.schema.split(".")) if options.schema else (),
        version=Version(options.snapshot_id, options.ref, options.as_of),
        zone=Zone(options.timezone or "UTC"),
    )


def _label(statement: Statement) -> str:
    """Return what people call a query: the tables that it names."""
    tree = statement.tree
    names = [] if tree is None else [table.sql() for table in find_tables(tree)]
    return ", ".join(dict.fromkeys(names))[:_LABEL_CHARACTERS] or "SQL"
