"""SQL: what clients of Flight SQL ask for, before and beside what is computed.

Knows nothing of Flight; `floeberg.server.flight.sql` adapts it.
"""
