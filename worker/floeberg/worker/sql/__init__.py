"""Statements over the rows of tickets, run by DuckDB."""
