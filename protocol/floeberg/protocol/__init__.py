"""What every side of floeberg agrees on: the format, expressions, tasks, tickets and errors.

Opens no socket and starts no thread.
"""
