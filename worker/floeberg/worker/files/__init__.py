"""Data files and delete files as they are stored: opened, and decoded to Arrow, knowing nothing of
the table.
"""
