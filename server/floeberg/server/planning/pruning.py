"""A scan's filter as seen through each partition spec of a table.

Everything here errs on the side of reading: it may keep a file with no matching row, and never
drops one that has some. A filter is projected through the spec that a manifest was written with,
never through the table's current one. Spec: "Scan Planning".
"""

from __future__ import annotations

from functools import cached_property

from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.expressions.projection import project_inclusive
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.server.planning.vectorised import PartitionSummaries, SegmentFilter
from floeberg.server.planning.vectorised.ordered import Mask


class SpecFilter:
    """A scan's filter as seen through one partition spec. Used by the one thread that plans.

    `may_be_imported` is explained by `decode_bounds`.
    """

    def __init__(
        self,
        filter_: BoundExpression,
        spec: PartitionSpec,
        schema: Schema,
        *,
        may_be_imported: bool = False,
    ) -> None:
        self.spec = spec
        self._filter = filter_
        self._schema = schema
        self._may_be_imported = may_be_imported
        self._projected = project_inclusive(filter_, spec, schema)
        self._partition_type = spec.partition_type(schema)

    def manifests_may_match(self, summaries: PartitionSummaries) -> Mask:
        """Say of each manifest whether its partition summaries leave room for a match."""
        return summaries.may_match(self._projected, self.spec, self._partition_type)

    @cached_property
    def entries(self) -> SegmentFilter:
        """What decides about the entries of manifests."""
        return SegmentFilter(
            self._filter, self.spec, self._schema, may_be_imported=self._may_be_imported
        )


class SpecFilters:
    """The filters of all specs of a table, made when a manifest first needs them."""

    def __init__(self, filter_: BoundExpression, metadata: TableMetadata, schema: Schema) -> None:
        self._filter = filter_
        self._metadata = metadata
        self._schema = schema
        self._by_spec: dict[int, SpecFilter] = {}
        # files from elsewhere have no field ids, and a table with such files has a name mapping
        self._may_be_imported = metadata.name_mapping() is not None

    def __getitem__(self, spec_id: int) -> SpecFilter:
        """Raises `CorruptMetadata` for a spec that the table does not have."""
        found = self._by_spec.get(spec_id)
        if found is None:
            spec = self._metadata.spec_by_id(spec_id)
            found = self._by_spec[spec_id] = SpecFilter(
                self._filter, spec, self._schema, may_be_imported=self._may_be_imported
            )
        return found
