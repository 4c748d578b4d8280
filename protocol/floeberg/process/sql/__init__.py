"""DuckDB, as a coordinator and a worker have it: locked down, and what may be asked of it."""
