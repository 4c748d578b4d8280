"""Row-level deletes: positions, deletion vectors and equality, loaded once and applied to many
files.
"""
