"""The worker: redeem a ticket, read its tasks, stream the batches."""
