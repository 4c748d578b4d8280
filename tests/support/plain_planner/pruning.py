"""What of a filter is left for one file, and whether its statistics leave room for a match."""

from __future__ import annotations

from floeberg.protocol.expressions.metrics import file_may_match
from floeberg.protocol.expressions.model import TRUE, BoundExpression
from floeberg.protocol.expressions.residuals import Residuals
from floeberg.protocol.expressions.rewriting import only_about
from floeberg.protocol.files import Content, DataFile, DeleteFile
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema


class FileFilter:
    """A scan's filter as seen through one partition spec, for one file after the other."""

    def __init__(
        self,
        filter_: BoundExpression,
        spec: PartitionSpec,
        schema: Schema,
        *,
        may_be_imported: bool = False,
    ) -> None:
        self.spec = spec
        self._may_be_imported = may_be_imported
        self._schema = schema
        self._residuals = Residuals(filter_, spec, schema)

    def residual(self, file: DataFile | DeleteFile) -> BoundExpression:
        """Return what the filter still asks of rows in the file's partition; FALSE rules it out.

        For a delete file that answers whether any data file that it applies to can be needed: they
        are in its partition, or it is global and its spec rules out nothing.
        """
        return self._residuals.in_partition(file.partition)

    def may_delete_a_match(self, delete: DeleteFile) -> bool:
        """Say whether the statistics of what a delete compares leave room for a needed row."""
        if delete.content is not Content.EQUALITY_DELETES or not delete.equality_ids:
            return True
        said = only_about(self.residual(delete), frozenset(delete.equality_ids))
        return self.metrics_may_match(said, delete)

    def metrics_may_match(self, residual: BoundExpression, file: DataFile | DeleteFile) -> bool:
        """Say whether the file's statistics leave room for a row of which `residual` is true."""
        return residual == TRUE or file_may_match(
            residual,
            self._schema,
            file.metrics,
            file.record_count,
            may_be_imported=self._may_be_imported,
        )
