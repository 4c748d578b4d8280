"""Ask a coordinator for a scan, and read its endpoints in parallel."""
