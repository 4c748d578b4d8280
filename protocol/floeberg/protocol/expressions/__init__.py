"""Filters: how they are written, bound to a schema, projected onto partitions and evaluated."""
