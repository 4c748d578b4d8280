"""`make demo`: a small lake, a coordinator with workers, and clients that read it."""
