"""Tickets, tokens, commands and messages that were tampered with, sent to a whole fleet.

`mutations` tampers, `target` is the fleet and what is genuine for it, `attacks` sends and judges
the answer. `python -m tests.fuzz.hostile --help`.
"""
