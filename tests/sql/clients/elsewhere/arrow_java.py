"""Arrow's client of Flight SQL for Java, on which its JDBC driver stands, in a JVM within Python.

Reads each endpoint where the first of its locations says, as the driver does.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jpype
from serving import serve

_WANTED = (
    *("arrow-format-", "arrow-memory-", "arrow-vector-", "flatbuffers-java-", "flight-"),
    *("grpc-api-", "grpc-context-", "grpc-core-", "grpc-netty-", "grpc-protobuf-", "grpc-stub-"),
    *("grpc-util-", "guava-", "failureaccess-", "netty-", "perfmark-api-", "protobuf-java-"),
    *("slf4j-api-", "jackson-", "jsr305-", "commons-codec-"),
)


def start() -> None:
    """Start the JVM, with the jars of Deephaven's server that are Arrow's or its needs."""
    found = find_spec("deephaven_server")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    jars = [str(jar) for jar in folder.rglob("*.jar") if jar.name.startswith(_WANTED)]
    jpype.startJVM("--add-opens=java.base/java.nio=ALL-UNNAMED", classpath=jars)


def _plain(value: Any) -> Any:
    """Return a value of Java's as JSON has it."""
    if value is None:
        return None
    if isinstance(value, jpype.java.lang.Number):
        is_whole = isinstance(value, (jpype.java.lang.Long, jpype.java.lang.Integer))
        return int(value.longValue()) if is_whole else float(value.doubleValue())
    return str(value)


class Session:
    def __init__(
        self, host: str, port: int, token: str | None, username: str | None, password: str | None
    ) -> None:
        flight = jpype.JPackage("org").apache.arrow.flight
        self._flight = flight
        self._allocator = jpype.JPackage("org").apache.arrow.memory.RootAllocator()
        self._options: list[Any] = []
        where = flight.Location.forGrpcInsecure(host, port)
        dialled = flight.FlightClient.builder(self._allocator, where).build()
        if token is not None:
            writer = flight.auth2.BearerCredentialWriter(token)
            self._options = [flight.grpc.CredentialCallOption(writer)]
        elif username is not None:
            self._options = [dialled.authenticateBasicToken(username, password).get()]
        self._client = flight.sql.FlightSqlClient(dialled)

    def tables(self) -> list[str]:
        info = self._client.getTables(None, None, None, None, False, self._given())
        return [f"{row[1]}.{row[2]}" for row in self._read(info)]

    def columns(self, schema: str, table: str) -> list[str]:
        info = self._client.getTables(None, schema, table, None, True, self._given())
        ((raw,),) = ([row[4] for row in self._read(info, plain=False)],)
        channel = jpype.java.nio.channels.Channels.newChannel(
            jpype.java.io.ByteArrayInputStream(raw)
        )
        arrow = jpype.JPackage("org").apache.arrow.vector.ipc
        read = arrow.message.MessageSerializer.deserializeSchema(arrow.ReadChannel(channel))
        return [str(field.getName()) for field in read.getFields()]

    def rows(self, sql: str, parameters: list[Any]) -> list[list[Any]]:
        if not parameters:
            return list(self._read(self._client.execute(sql, self._given())))
        prepared = self._client.prepare(sql, self._given())
        try:
            with self._bound(parameters) as root:
                prepared.setParameters(root)
                info = prepared.execute(self._given())
            return list(self._read(info))
        finally:
            prepared.close(self._given())

    def stream(self, sql: str) -> Stream:
        return Stream(self._streams(self._client.execute(sql, self._given())))

    def _given(self) -> Any:
        return jpype.JArray(self._flight.CallOption)(self._options)

    def _bound(self, parameters: list[Any]) -> Any:
        vectors = jpype.JPackage("org").apache.arrow.vector
        made = jpype.java.util.ArrayList()
        for number, value in enumerate(parameters):
            kind, content = {
                int: (vectors.BigIntVector, value),
                float: (vectors.Float8Vector, value),
                str: (vectors.VarCharVector, str(value).encode()),
            }[type(value)]
            vector = kind(str(number), self._allocator)
            vector.allocateNew()
            vector.setSafe(0, content)
            vector.setValueCount(1)
            made.add(vector)
        root = vectors.VectorSchemaRoot(made)
        root.setRowCount(1)
        return root

    def _streams(self, info: Any) -> Any:
        for endpoint in info.getEndpoints():
            client = self._client
            for location in endpoint.getLocations():
                if str(location.getUri().getScheme()) != "arrow-flight-reuse-connection":
                    dialled = self._flight.FlightClient.builder(self._allocator, location).build()
                    client = self._flight.sql.FlightSqlClient(dialled)
                break
            try:
                yield client.getStream(endpoint.getTicket(), self._given())
            finally:
                if client is not self._client:
                    client.close()

    def _read(self, info: Any, *, plain: bool = True) -> Any:
        for stream in self._streams(info):
            with stream:
                while stream.next():
                    root = stream.getRoot()
                    vectors = list(root.getFieldVectors())
                    for at in range(root.getRowCount()):
                        row = [vector.getObject(at) for vector in vectors]
                        yield [_plain(value) for value in row] if plain else row


class Stream:
    def __init__(self, streams: Any) -> None:
        self._streams = streams
        self._now: Any = None

    def read(self) -> int:
        while True:
            if self._now is None:
                self._now = next(self._streams, None)
                if self._now is None:
                    return 0
            while self._now.next():
                rows = int(self._now.getRoot().getRowCount())
                if rows:
                    return rows
            self._now.close()
            self._now = None

    def cancel(self) -> None:
        if self._now is not None:
            self._now.cancel("enough", None)
            self._now.close()
        self._streams.close()


start()
serve(Session)
sys.stdin.close()
