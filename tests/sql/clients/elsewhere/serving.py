"""Do what is asked for on standard input, with a client that lives in an environment of its own.

Each line is a JSON object, `{"do": NAME, …}`, and so is each answer, `{"done": …}` or `{"error":
TEXT}`. Nothing of floeberg is imported here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def serve(connect: Callable[..., Any]) -> None:
    """Answer until the input ends. `connect` takes the keys of a request and returns a session,
    which has `tables`, `columns`, `rows` and `stream`."""
    told, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    session: Any = None
    stream: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("do")
        try:
            if name == "connect":
                session = connect(**request)
                done: Any = None
            elif name == "stream":
                stream = session.stream(**request)
                done = None
            elif name in ("read", "cancel"):
                done = getattr(stream, name)()
            else:
                done = getattr(session, name)(**request)
            answer = {"done": done}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), file=told, flush=True)
