"""Rows as data frames of the libraries that people analyse them with, where those are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from floeberg.protocol.errors import BadConfig

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(read: Callable[[], pa.Table], options: dict[str, Any]) -> pd.DataFrame:
    """Return the rows that `read` returns as a pandas DataFrame; `options` are those of
    `pyarrow.Table.to_pandas`.

    Raises `BadConfig` where pandas is not installed; nothing is read then.
    """
    try:
        import pandas  # noqa: F401  # an optional dependency, which pyarrow needs
    except ImportError as exc:
        raise _missing("pandas") from exc
    return read().to_pandas(**options)


def to_polars(read: Callable[[], pa.Table]) -> pl.DataFrame:
    """Return the rows that `read` returns as a Polars DataFrame.

    Raises `BadConfig` where Polars is not installed; nothing is read then.
    """
    try:
        import polars as pl  # an optional dependency
    except ImportError as exc:
        raise _missing("polars") from exc
    frame = pl.from_arrow(read())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _missing(package: str) -> BadConfig:
    return BadConfig(
        f"to_{package}() needs {package}, which is not installed: pip install {package} (or"
        f" floeberg with its extra, 'floeberg[{package}]')"
    )
