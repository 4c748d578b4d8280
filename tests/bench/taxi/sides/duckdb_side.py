"""DuckDB's iceberg extension, which comes as a package: `iceberg_scan(…)` of the metadata file."""

from __future__ import annotations

import argparse
import importlib.metadata

import duckdb
import pyarrow as pa

from tests.bench.taxi.answers import Answer, aggregated
from tests.bench.taxi.sides.serving import Question, Refuses, serve

_EXTENSIONS = ("avro", "httpfs", "iceberg")


class DuckDBSide:
    """Keeps what it has read of files in memory, as it does by itself, or not."""

    def __init__(self, *, keep_data: bool) -> None:
        self._connection = duckdb.connect(config={"enable_external_file_cache": keep_data})
        for extension in _EXTENSIONS:
            self._connection.load_extension(_extension_file(extension))
        self._has_store = False

    def answer(self, question: Question) -> Answer:
        if question.properties and not self._has_store:
            self._connect_store(question)
        query = question.asked
        sql = query.sql(f"iceberg_scan('{question.metadata_file}')")
        try:
            found = self._connection.sql(sql).to_arrow_table()
        except (duckdb.NotImplementedException, duckdb.InvalidInputException) as refusal:
            raise Refuses(str(refusal)) from refusal
        assert isinstance(found, pa.Table)
        return aggregated(query, found)

    def _connect_store(self, question: Question) -> None:
        properties = question.properties
        scheme, _, endpoint = properties["s3.endpoint"].partition("://")
        self._connection.execute(
            "CREATE SECRET (TYPE s3, URL_STYLE 'path', KEY_ID ?, SECRET ?, ENDPOINT ?, USE_SSL ?)",
            [
                properties["s3.access-key-id"],
                properties["s3.secret-access-key"],
                endpoint,
                scheme == "https",
            ],
        )
        self._has_store = True


def _extension_file(name: str) -> str:
    package = importlib.metadata.distribution(f"duckdb-extension-{name}")
    (found,) = [f for f in package.files or () if f.name == f"{name}.duckdb_extension"]
    return str(package.locate_file(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-no-data", action="store_true")
    serve(DuckDBSide(keep_data=not parser.parse_args().keep_no_data))
