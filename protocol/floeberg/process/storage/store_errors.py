"""What an object store's failures are called, whichever library tells of them."""

from __future__ import annotations

from floeberg.protocol.errors import AccessDenied, ExpiredCredentials, StorageUnavailable

_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})


def refused(location: str, code: str = "") -> AccessDenied:
    """Return the error for a store that refuses; `code` is its own word for it, or its number."""
    why = f" ({code})" if code and not code.isdecimal() else ""
    if code in _EXPIRED:
        return ExpiredCredentials(
            f"the object store refused to read {location}{why}: ask for the scan again"
            " (GetFlightInfo) if a catalog lent the credentials, and replace them otherwise"
        )
    return AccessDenied(
        f"the object store refused to read {location}{why}: check the credentials, and that their"
        " policy lets them read there"
    )


def not_served(location: str, why: str) -> StorageUnavailable:
    return StorageUnavailable(f"the object store did not serve {location}: {why}")
