"""Whether a process serves gRPC's health service, and on which port.

Without `health_port` there is none, and grpcio is not even imported: it is a second gRPC beside the
one in pyarrow, whose servers take no other service than Flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floeberg.process.http import Readiness
from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig

if TYPE_CHECKING:
    from floeberg.process.grpc_health import GrpcHealth


def configured_health(config: ServiceConfig, readiness: Readiness) -> GrpcHealth | None:
    """Return the health service that a configuration asks for, not yet started.

    Raises `BadConfig` where it does and a package is missing.
    """
    if config.health_port is None:
        return None
    try:
        from floeberg.process.grpc_health import GrpcHealth
    except ImportError as exc:
        raise BadConfig(
            f"'health_port' needs a package that is missing, {exc.name}:"
            " pip install 'floeberg[health]', or leave it out"
        ) from exc
    return GrpcHealth(readiness, host=config.http_host, port=config.health_port)
