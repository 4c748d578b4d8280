from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from floeberg.process.tracing import begin_span, configure_tracing, span, use_tracer
from tests.support.processes import environment


@pytest.fixture(autouse=True)
def no_tracer() -> Iterator[None]:
    yield
    use_tracer(None)


def test_without_a_tracer_spans_are_nothing() -> None:
    with span("a") as outer, span("b", {"n": 1}, traceparent="x"):
        assert outer.traceparent is None
    alone = begin_span("c", {"n": None})
    alone.event("e", n=1)
    alone.end("CODE", rows=1)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"},
    ],
)
def test_opentelemetry_is_not_imported_unless_it_is_asked_for(environ: dict[str, str]) -> None:
    code = (
        "import os, sys\n"
        "from floeberg.process.tracing import configure_tracing\n"
        "import floeberg.server.process, floeberg.worker.process\n"
        "configure_tracing('s', os.environ)\n"
        "sys.exit('opentelemetry' in sys.modules)"
    )
    own = {k: v for k, v in environment().items() if not k.startswith("OTEL_")}
    subprocess.run([sys.executable, "-c", code], env=own | environ, check=True)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "otlp, console or none"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_an_environment_that_asks_for_what_there_is_not_is_told_and_no_reason_to_end(
    environ: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("opentelemetry.sdk")

    configure_tracing("s", environ)

    assert "traces are not collected" in caplog.text
    assert any(why in str(record.__dict__.get("why")) for record in caplog.records)
    with span("a") as made:
        assert made.traceparent is None
