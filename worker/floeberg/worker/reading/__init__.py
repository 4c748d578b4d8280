"""From tasks to batches of rows."""

from floeberg.worker.reading.plans import PlacedBatch, PlanReader, to_batches_for_tasks

__all__ = ["PlacedBatch", "PlanReader", "to_batches_for_tasks"]
