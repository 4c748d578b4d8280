"""Which coordinators a worker asks for credentials, and what it makes of their answers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from floeberg.process.storage.credentials import fingerprint, properties_for
from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.errors import (
    CatalogUnavailable,
    CredentialsUnavailable,
    ExpiredCredentials,
    FloebergError,
    ServerUnavailable,
    UnknownTable,
)
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.registration import AskCredentials, LentByPrefix, LentCredentials
from floeberg.protocol.storage import CredentialRenewal, StorageConfig
from floeberg.worker.credentials import WorkerCredentials
from tests.support.plan_strategies import METADATA, SCHEMA

RENEWAL = CredentialRenewal("lake.db.t", b"token")
HELD = StorageConfig({"s3.session-token-expires-at-ms": "1"}, renewal=RENEWAL)
PLAN = ReadPlan(METADATA, SCHEMA.schema_id, SCHEMA, (), HELD)


@dataclass
class ScriptedLender:
    """Answers as the script says, and tells what it was asked."""

    answer: LentCredentials | FloebergError | None = None
    asked: list[AskCredentials] = field(default_factory=list)
    is_closed: bool = False

    def lend(self, message: AskCredentials, seconds: float) -> LentCredentials:
        self.asked.append(message)
        if isinstance(self.answer, FloebergError):
            raise self.answer
        own = LentByPrefix(prefixes=("s3://b/", "s3://c/"), properties={"s3.access-key-id": "k"})
        return LentCredentials(question=message.question, properties={}, credentials=(own,))

    def close(self) -> None:
        self.is_closed = True


def worker(lenders: dict[str, ScriptedLender]) -> WorkerCredentials:
    connect: Callable[[str], ScriptedLender] = lenders.__getitem__
    return WorkerCredentials("w1", lambda: list(lenders), connect, Renewals(0, now_ms=lambda: 10))


def test_a_plan_whose_credentials_can_not_be_renewed_has_no_source():
    assert worker({}).source(replace(PLAN, storage=StorageConfig())) is None


def test_the_first_that_answers_gives_them_and_all_plans_of_the_table_share_them():
    away, here, other = (
        ScriptedLender(ServerUnavailable("away")),
        ScriptedLender(),
        ScriptedLender(),
    )
    credentials = worker({"a": away, "b": here, "c": other})
    source, another = credentials.source(PLAN), credentials.source(PLAN)
    assert source is not None
    assert another is not None

    fresh = source.current(HELD)

    assert properties_for("s3://b/x", fresh) == {"s3.access-key-id": "k"}
    assert properties_for("s3://c/x", fresh) == {"s3.access-key-id": "k"}
    assert another.current(HELD) is fresh
    assert (len(away.asked), len(here.asked), len(other.asked)) == (1, 1, 0)
    assert here.asked[0].worker_id == "w1"
    assert here.asked[0].table == "dG9rZW4="
    assert here.asked[0].refused is None
    assert len(here.asked[0].question) >= 16
    credentials.close()
    assert away.is_closed
    assert here.is_closed


def test_a_coordinator_that_is_none_any_more_is_forgotten():
    lenders = {"a": ScriptedLender()}
    credentials = worker(lenders)
    credentials.ask(RENEWAL, None)
    gone = weakref.ref(lenders.pop("a"))
    lenders["b"] = ScriptedLender()

    credentials.ask(RENEWAL, None)

    assert gone() is None


def test_what_a_store_refused_is_named_by_its_fingerprint():
    lender = ScriptedLender()
    source = worker({"a": lender}).source(PLAN)
    assert source is not None

    source.after_refusal(HELD)

    assert lender.asked[0].refused == fingerprint(HELD)


def test_tables_of_one_name_are_not_mixed_up():
    lender = ScriptedLender()
    credentials = worker({"a": lender})
    uuid = "00000000-0000-0000-0000-000000000001"
    later = METADATA.model_copy(update={"table_uuid": uuid})
    for metadata in (METADATA, later, METADATA):
        source = credentials.source(replace(PLAN, metadata=metadata))
        assert source is not None
        source.current(HELD)

    assert len(lender.asked) == 2


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ([], CredentialsUnavailable, "knows no coordinator to ask: give it 'coordinator'"),
        ([ServerUnavailable("away")], CredentialsUnavailable, "no coordinator answered: away"),
        ([UnknownTable("lake.db.t")], ExpiredCredentials, "no table 'lake.db.t'"),
        (
            [UnknownTable("t"), CatalogUnavailable("it is away")],
            CredentialsUnavailable,
            "it is away",
        ),
    ],
)
def test_where_nobody_gives_any_the_reason_is_told(
    answers: list[FloebergError], error: type[FloebergError], words: str
):
    lenders = {str(i): ScriptedLender(answer) for i, answer in enumerate(answers)}
    source = worker(lenders).source(PLAN)
    assert source is not None

    with pytest.raises(error, match=r"lake\.db\.t") as raised:
        source.current(HELD)
    assert words in str(raised.value)
