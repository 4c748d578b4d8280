"""Keys that a table's metadata lists for its encryption. Spec: "Encryption Keys"."""

from __future__ import annotations

from pydantic import Field, model_validator

from floeberg.protocol.document import Document, TextMap
from floeberg.protocol.types import Json


class EncryptionKey(Document):
    """A wrapped key; the repr shows its ids only.

    Appendix C spells the payload `key-metadata`, the table of fields `encrypted-key-metadata`:
    both are read, and the second is written.
    """

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: TextMap = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, raw: Json) -> Json:
        if isinstance(raw, dict) and "key-metadata" in raw:
            raw = dict(raw)
            payload = raw.pop("key-metadata")
            raw.setdefault("encrypted-key-metadata", payload)
        return raw

    def __repr__(self) -> str:
        return f"EncryptionKey(key_id={self.key_id!r}, encrypted_by_id={self.encrypted_by_id!r})"

    __str__ = __repr__
