"""Jackson under the name by which Iceberg's runtime jar looks for it.

The jar of `snowpark-connect-deps-iceberg` leaves out the relocated Jackson that Iceberg's own
classes name, and no table metadata can be read without it. It does hold the same version once more,
relocated for Parquet. Here that copy is given the other name.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

_FROM = "org/apache/iceberg/shaded/org/apache/parquet/shaded/com/fasterxml/jackson"
_TO = "org/apache/iceberg/shaded/com/fasterxml/jackson"

# bytes after the tag of each kind of constant (Java Virtual Machine Specification, 4.4)
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4}
_SIZES |= {15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_UTF8, _LONG, _DOUBLE = 1, 5, 6


def relocate_jackson(runtime_jar: Path, target: Path) -> Path:
    """Write Jackson's classes from `runtime_jar` to the jar `target`, under Iceberg's name."""
    with zipfile.ZipFile(runtime_jar) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            if name.startswith(_FROM) and name.endswith(".class"):
                out.writestr(name.replace(_FROM, _TO), _renamed(source.read(name)))
    return target


def _renamed(class_file: bytes) -> bytes:
    """Return a class file with the package's name replaced in every text of its constant pool."""
    (count,) = struct.unpack_from(">H", class_file, 8)
    out = [class_file[:10]]
    at, index = 10, 1
    while index < count:
        tag = class_file[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", class_file, at + 1)
            text = class_file[at + 3 : at + 3 + length]
            for old, new in ((_FROM, _TO), (_FROM.replace("/", "."), _TO.replace("/", "."))):
                text = text.replace(old.encode(), new.encode())
            out.append(struct.pack(">BH", _UTF8, len(text)) + text)
            at += 3 + length
        else:
            out.append(class_file[at : at + 1 + _SIZES[tag]])
            at += 1 + _SIZES[tag]
        index += 2 if tag in (_LONG, _DOUBLE) else 1  # these take two places
    return b"".join([*out, class_file[at:]])
