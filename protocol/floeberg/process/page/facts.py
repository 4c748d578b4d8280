"""The parts of a page that coordinator and worker have alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floeberg.process.page.formats import ago, amount, count, duration
from floeberg.process.page.html import Html
from floeberg.process.page.parts import Column, Mood, badge, code, ratio, table
from floeberg.protocol.status import CacheEntry, CertificateEntry, CertificateState


def caches_table(caches: Sequence[CacheEntry]) -> Html:
    return table(
        "Caches",
        [
            Column("cache"),
            Column("hits", is_number=True),
            Column("misses", is_number=True),
            Column("hit rate", is_number=True),
            Column("size", is_number=True),
        ],
        (
            (
                c.name,
                count(c.hits),
                count(c.misses),
                ratio(c.hits, c.hits + c.misses),
                "" if c.size_bytes is None else amount(c.size_bytes),
            )
            for c in caches
        ),
        empty="There are none.",
    )


def errors_table(errors: Mapping[str, int]) -> Html:
    return table(
        "Failed calls by code",
        [Column("code"), Column("calls", is_number=True)],
        ((code(name), count(number)) for name, number in errors.items()),
        empty="No call has failed since the start.",
    )


def certificates_table(certificates: Sequence[CertificateEntry], now_ms: int) -> Html:
    return table(
        "Files of TLS that are in use",
        [Column("file"), Column("state"), Column("expires", is_number=True), Column("on disk")],
        (
            (
                code(c.file),
                badge(c.state, _MOODS[c.state]),
                _expires(c, now_ms),
                badge("replaced: restart to use it", "busy") if c.is_replaced else "the same",
            )
            for c in certificates
        ),
        empty="TLS is not configured.",
    )


_MOODS: dict[CertificateState, Mood] = {"good": "good", "expires soon": "busy", "expired": "bad"}


def _expires(certificate: CertificateEntry, now_ms: int) -> str:
    if certificate.expires_ms is None:
        return ""
    left = certificate.expires_ms - now_ms
    return f"in {duration(left / 1000)}" if left > 0 else ago(-left)
