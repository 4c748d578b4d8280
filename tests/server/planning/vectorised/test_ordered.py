"""Comparing columns of text costs no import: pandas takes longer than many a plan."""

from __future__ import annotations

import os
import subprocess
import sys

COMPARING = """
import sys
import numpy as np
from floeberg.protocol.expressions.model import Op
from floeberg.protocol.manifests import Strings
from floeberg.server.planning.vectorised.ordered import ByteColumn, as_binary, is_member

texts = Strings(np.frombuffer(b"abbccc", np.uint8), np.array([0, 1, 1, 3, 6], np.int32))
column = ByteColumn(as_binary(texts), None)
assert column.compare(Op.EQ, b"bb").tolist() == [False, False, True, False]
assert column.compare(Op.LE, column).tolist() == [True] * 4
assert column.compare(Op.LT, b"").tolist() == [False] * 4
assert column.starts_with(b"c").tolist() == [False, False, False, True]
assert is_member(column, [b"", b"a", b"cc"]).tolist() == [True, True, False, False]
part = ByteColumn(column.values[1:], None)
assert part.compare(Op.EQ, b"bb").tolist() == [False, True, False]
none = ByteColumn(column.values[:0], None)
assert none.compare(Op.EQ, b"bb").tolist() == []
assert "pandas" not in sys.modules
"""


def test_text_is_compared_without_pandas():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    subprocess.run([sys.executable, "-c", COMPARING], check=True, env=environment)
