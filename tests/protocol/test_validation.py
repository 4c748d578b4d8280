from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from floeberg.protocol.validation import plain_reason


def even(raw: object) -> object:
    if raw == 3:
        raise ValueError("is odd")
    return raw


class Document(BaseModel):
    key: int


@pytest.mark.parametrize(
    ("type_", "value", "reason"),
    [
        (str, 1, "is not text"),
        (bool, [], "is neither true nor false"),
        (int, "x", "is not a whole number"),
        (int, [], "is not a whole number"),
        (int, 1.5, "is not a whole number"),
        (int, "9" * 5000, "is not a number of a sensible size"),
        (float, "x", "is not a number"),
        (list[int], 1, "is not a list"),
        (tuple[int, ...], 1, "is not a list"),
        (dict[str, int], 1, "is not an object"),
        (Document, 1, "is not an object"),
        (Document, {}, "is missing"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
        (Annotated[int, Field(gt=1)], 1, "must be more than 1"),
        (Annotated[int, Field(le=1)], 2, "must be at most 1"),
        (Annotated[int, Field(lt=1)], 1, "must be less than 1"),
        (Annotated[str, Field(min_length=1)], "", "is empty"),
        (Annotated[int, BeforeValidator(even)], 3, "is odd"),
    ],
)
def test_a_reason_has_words_that_a_caller_knows(type_: Any, value: object, reason: str):
    adapter: TypeAdapter[Any] = TypeAdapter(type_)
    with pytest.raises(ValidationError) as raised:
        adapter.validate_python(value)

    (error,) = raised.value.errors()
    assert plain_reason(error) == reason


def test_another_reason_is_pydantics_own():
    error = {"type": "url_scheme", "msg": "Input should be a URL with a proper scheme"}

    assert plain_reason(error) == "must be a URL with a proper scheme"
