"""Random tables and random questions about them, compared with the plain reader.

`generating` makes a case out of a seed, `building` writes its table, `checking` asks floeberg and
the reader and compares, `shrinking` makes a failing case small. `python -m tests.fuzz --help`.
"""
