"""The image's health check: ends with 0 where the container's process wants work, else with 1.

The path may be given, such as `/healthz`; without one it is `/readyz`. Standard library alone: it
runs every few seconds.
"""

from __future__ import annotations

import http.client
import os
import sys

_TIMEOUT_SECONDS = 4


def main() -> int:
    path = sys.argv[1] if len(sys.argv) > 1 else "/readyz"
    port = int(os.environ["FLOEBERG_HTTP_PORT"])
    # http.client, since urllib would ask a proxy that the environment names
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        print(f"{path} on port {port}: {error}")
        return 1
    print(answer.read().decode(errors="replace"))
    return 0 if answer.status == http.HTTPStatus.OK else 1


if __name__ == "__main__":
    sys.exit(main())
