"""Read tables from a floeberg server, in parallel, losing no row when a worker goes.

from floeberg.client import connect

with connect("grpc://localhost:8815") as lake:
    rows = lake.table("db.orders").scan(filter="amount > 10", select=["id", "amount"]).to_arrow()
    sums = lake.sql("SELECT region, sum(amount) FROM db.orders GROUP BY region").to_arrow()
"""

from floeberg.client.hedging import Hedging
from floeberg.client.lake import Lake, RemoteTable, TableListing, connect
from floeberg.client.query import RemoteQuery
from floeberg.client.scan import RemoteScan
from floeberg.client.streams import Progress
from floeberg.process.retries import RetryPolicy

__all__ = [
    "Hedging",
    "Lake",
    "Progress",
    "RemoteQuery",
    "RemoteScan",
    "RemoteTable",
    "RetryPolicy",
    "TableListing",
    "connect",
]
