"""Iceberg Java: `table.newScan().filter(…).planFiles()`, counted within a JVM that py4j talks to.

The JVM has its defaults but for 4 GB of heap, and compiles what is hot, as a coordinator's would.
"""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.bench.planning.questions import Filter
from tests.bench.planning.sides.serving import Refuses, serve
from tests.oracles.jackson import relocate_jackson

_PREDICATES: Mapping[str, str] = {
    "=": "equal",
    "<": "lessThan",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
}


class JavaSide:
    def __init__(self, scratch: Path) -> None:
        port, self._process = launch_gateway(
            jarpath=_py4j_jar(),
            classpath=":".join(map(str, _class_path(scratch))),
            javaopts=["-Xmx4g", "-Duser.timezone=UTC"],
            die_on_exit=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        jvm: Any = self._gateway.jvm
        self._tables_of = jvm.org.apache.iceberg.hadoop.HadoopTables(
            jvm.org.apache.hadoop.conf.Configuration()
        )
        self._expressions = jvm.org.apache.iceberg.expressions.Expressions
        self._iterables = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables
        self._tables: dict[str, Any] = {}

    def plan(self, metadata_file: str, filter_: Filter) -> int:
        table = self._tables.get(metadata_file)
        if table is None:
            directory = Path(metadata_file).parents[1]
            table = self._tables[metadata_file] = self._tables_of.load(f"file://{directory}")
        scan = table.newScan()
        for operation, column, literal in filter_:
            scan = scan.filter(getattr(self._expressions, _PREDICATES[operation])(column, literal))
        try:
            planned = scan.planFiles()
            tasks = int(self._iterables.size(planned))
            planned.close()
        except Py4JJavaError as refusal:
            raise Refuses(str(refusal.java_exception)) from refusal
        return tasks

    def forget(self) -> None:
        self._tables.clear()

    def cpu_seconds(self) -> float:
        # what the JVM itself would tell is in a module that py4j may not enter
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def process_id(self) -> int:
        return int(self._process.pid)

    def cached_bytes(self) -> int:
        return 0

    def close(self) -> None:
        self._gateway.shutdown()


def _py4j_jar() -> str:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    return str(jar)


def _class_path(scratch: Path) -> list[Path]:
    package = importlib.metadata.distribution("snowpark-connect-deps-iceberg")
    (runtime,) = (
        Path(str(package.locate_file(f)))
        for f in package.files or ()
        if f.name.startswith("iceberg-spark-runtime") and "_2.12-" in f.name
    )
    jackson = relocate_jackson(runtime, scratch / "jackson.jar")
    # hadoop's, for local files
    return [runtime, jackson, Path(pyspark.__file__).parent / "jars" / "*"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        side = JavaSide(Path(directory))
        serve(side)
        side.close()
