"""Everything in one place: tables read in this process, and a whole fleet run on one machine."""

from floeberg.embedded.options import ScanOptions
from floeberg.embedded.reader import BatchReader
from floeberg.embedded.scan import TableScan
from floeberg.embedded.table import Table, open_table

__all__ = ["BatchReader", "ScanOptions", "Table", "TableScan", "open_table"]
