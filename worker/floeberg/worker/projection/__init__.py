"""From the columns that a file stores to the columns that a table has: resolved by id once, then
built a chunk at a time.
"""
