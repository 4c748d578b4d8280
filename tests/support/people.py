"""A table with things that not everybody may know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.lake import TableWriter, list_of, required, schema, struct

PEOPLE = 60


def person(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "region": ("eu", "us")[number % 2],
        "team": ("red", "green", "blue")[number % 3],
        "email": f"mail{number}@example",
        "salary": number * 1000.0,
        "address": {"street": f"street {number}", "city": f"city {number % 5}"},
        "notes": [{"text": f"note {number}", "secret": f"secret {number}"}],
    }


def write_people(directory: Path) -> TableWriter:
    """Write a table partitioned by team: two appends, the first tagged `half`.

    `region` came into the table as `area` and was renamed after the first append; `nickname` was
    dropped after it.
    """
    table = TableWriter.create(
        directory,
        schema(
            {
                "id": required("long"),
                "area": "string",
                "team": "string",
                "email": "string",
                "salary": required("double"),
                "address": struct({"street": required("string"), "city": "string"}),
                "notes": list_of(struct({"text": "string", "secret": "string"})),
                "nickname": "string",
            }
        ),
        [("team", "identity")],
    )
    people = [person(number) for number in range(PEOPLE)]
    first = [
        {**{k: v for k, v in p.items() if k != "region"}, "area": p["region"], "nickname": "x"}
        for p in people[: PEOPLE // 2]
    ]
    table.append(first)
    table.tag("half")
    table.rename_column("area", "region")
    table.drop_column("nickname")
    table.append(people[PEOPLE // 2 :])
    table.set_properties({"write.metadata.metrics.column.email": "none"})
    return table
