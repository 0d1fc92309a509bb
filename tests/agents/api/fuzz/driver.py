"""Schemathesis as alice, with ids of alice and bob where the schema says only `string`."""

from __future__ import annotations

import copy
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.support.two_people import Somebody

API = "/api/v1"
STREAMS = ("stream_events", "stream_chat", "send_chat_message")
"""These responses last as long as a run."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "ignored_auth",
    "unsupported_method",
)
REJECTED = [400, 401, 403, 404, 405, 409, 411, 412, 413, 415, 429]

_in_query = {
    "run": "run_id",
    "thread": "thread_id",
    "parent": "run_id",
    "agent": "agent",
    "path": "path",
}
_in_body = {**_in_query, "digest": "digest", "step": "step", "id": "chat_id"}


@dataclass
class Report:
    """The result of `fuzz`. `statuses` counts answers by operation, as `{"get_run": {200: 7}}`."""

    found: list[str] = field(default_factory=list)
    sent: int = 0
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with answers closed to fields that it does not name."""
    strict = copy.deepcopy(document)
    for schema in strict["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return strict


def fuzz(
    document: dict[str, Any],
    url: str,
    headers: dict[str, str],
    people: tuple[Somebody, Somebody],
    *,
    only: Callable[[str], bool],
    examples: int,
    phases: tuple[str, ...] = ("fuzzing",),
    deterministic: bool = True,
    checks: tuple[str, ...] = CHECKS,
) -> Report:
    """Test the operations that `only` accepts, and report the results."""
    import schemathesis  # 0.2 s, which the collection of the tests need not take
    from schemathesis.engine import from_schema

    mark_of_bob = people[1].mark

    def nothing_of_bob(ctx: Any, response: Any, case: Any) -> None:
        seen = response.content + repr(response.headers).encode()
        assert mark_of_bob.encode() not in seen, f"alice sees {mark_of_bob}"

    # Register the check first: the configuration accepts only registered checks.
    schemathesis.check(nothing_of_bob)
    config = schemathesis.Config.from_dict(
        {
            "base-url": url + API,
            "headers": headers,
            "request-timeout": 20,
            "request-retries": 1,  # Daphne sometimes closes a connection: see `_is_servers_own`
            "continue-on-failure": True,
            "generation": {
                "max-examples": examples,
                "deterministic": deterministic,
                "with-security-parameters": False,  # `ignored_auth` uses those
                "no-shrink": deterministic,
            },
            "phases": {
                name: {"enabled": name in phases}
                for name in ("examples", "coverage", "fuzzing", "stateful")
            },
            "checks": {
                "enabled": False,
                **{name: {"enabled": True} for name in (*checks, nothing_of_bob.__name__)},
                # A text that is too long often makes the body too large.
                "negative_data_rejection": {"enabled": True, "expected-statuses": REJECTED},
            },
        }
    )

    def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
        put_ids(case, people)

    schemathesis.hook(before_call)
    try:
        schema = schemathesis.openapi.from_dict(closed(document), config=config)
        schema = schema.include(func=lambda ctx: only(ctx.operation.definition.raw["operationId"]))
        schema.hook(filter_case)
        return _report(from_schema(schema).execute())
    finally:
        schemathesis.hooks.unregister(before_call)
        schemathesis.checks.CHECKS.unregister(nothing_of_bob.__name__)


def filter_case(context: Any, case: Any) -> bool:
    """Skip requests whose line is too long: Daphne closes the connection without a response."""
    return len(quote(repr((case.path_parameters, case.query)))) < 12_000


def put_ids(case: Any, people: tuple[Somebody, Somebody]) -> None:
    """Put real ids into most of the valid cases, the same ids in each run of a case."""
    given = (case.operation.label, case.path_parameters, case.query, case.body)
    chance = random.Random(repr(given))
    if chance.random() < 0.1 or _is_negative(case):
        return
    person = chance.choice(people)
    parameters = case.path_parameters or {}
    for name in parameters:
        if name in person.ids:
            parameters[name] = chance.choice(person.ids[name])
    for place, names in ((case.query, _in_query), (case.body, _in_body)):
        if not isinstance(place, dict):
            continue
        for name, kind in names.items():
            if name in place and chance.random() < 0.8:
                place[name] = chance.choice(person.ids[kind])


def _is_negative(case: Any) -> bool:
    return case.meta is not None and case.meta.generation.mode.value == "negative"


def _report(stream: Iterator[Any]) -> Report:
    from schemathesis.engine import events

    report = Report()
    for event in stream:
        if isinstance(event, events.ScenarioFinished):
            _add(report, event.recorder)
        elif isinstance(event, events.NonFatalError):
            report.found.append(f"{event.label}: {event.value!r}")
        elif isinstance(event, events.FatalError):
            raise event.exception
    return report


def _add(report: Report, recorder: Any) -> None:
    for case_id, interaction in recorder.interactions.items():
        report.sent += 1
        if interaction.response is not None:
            operation = recorder.cases[case_id].value.operation.definition.raw["operationId"]
            report.statuses[operation][interaction.response.status_code] += 1
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is None:
                continue
            report.found.append(_words(recorder, case_id, check))


def _words(recorder: Any, case_id: str, check: Any) -> str:
    case = recorder.cases[case_id].value
    interaction = recorder.interactions.get(case_id)
    answer = interaction.response if interaction else None
    status = answer.status_code if answer else "no answer"
    body = (answer.content or b"")[:300] if answer else b""
    said = str(check.failure_info.failure)[:600]
    asked = f"{case.method} {case.formatted_path} {case.query} {str(case.body)[:200]}"
    return f"{check.name}: {asked} -> {status} {body!r}: {said}"
