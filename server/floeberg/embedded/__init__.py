"""Every side in one process: local scans, a whole service on one machine, the command."""
