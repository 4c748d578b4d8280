"""From tasks to batches of rows."""

from floeberg.worker.reading.plans import PlacedBatch, to_batches_for_tasks

__all__ = ["PlacedBatch", "to_batches_for_tasks"]
