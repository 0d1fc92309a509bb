"""Schemathesis over the whole schema, as one of two users who each have data of every kind.

No request causes a server error or gets an answer outside the schema. No answer to alice contains
the mark that all of bob's data has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from agents.api.schema_document import document_at
from tests.agents.api.fuzz.driver import API, CHECKS, STREAMS, fuzz
from tests.support.site import migrated_site
from tests.support.two_people import Somebody, two_people

SESSION_ONLY = (
    "list_tokens",
    "create_token",
    "revoke_token",
    "get_docs",
    "create_hook",
    "change_hook",
    "delete_hook",
    "rotate_hook",
)

NEEDED_LATER = ("erase_thread", "archive_agent", "change_agent", "erase_agent")
"""Operations after which the owner could not send the others."""


@dataclass
class Served:
    url: str
    alice: Somebody
    bob: Somebody
    document: dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    given = os.environ.get("VEL_TEST_DATABASE_URL", "")
    site = migrated_site(tmp_path_factory.mktemp("fuzz"), given)
    site.environment["DJANGO_SETTINGS_MODULE"] = "tests.support.open_settings"
    site.environment["VEL_LOG_LEVEL"] = "CRITICAL"
    try:
        alice, bob = two_people(site)
        site.start_server()
        yield Served(site.url, alice, bob, document_at(API))
    finally:
        site.close()


def as_token(person: Somebody) -> dict[str, str]:
    return {"Authorization": f"Token {person.token}"}


def as_session(person: Somebody) -> dict[str, str]:
    csrf = "x" * 32
    cookies = f"sessionid={person.session}; csrftoken={csrf}"
    return {"Cookie": cookies, "X-CSRFToken": csrf}


def with_token(name: str) -> bool:
    return name not in (*STREAMS, *SESSION_ONLY)


def with_session(name: str) -> bool:
    return name in SESSION_ONLY


def send(served: Served, person: Somebody, whose: Somebody) -> Iterator[tuple[str, Any]]:
    """Send each operation with a path parameter as `person`, with the ids of `whose`."""
    for path, item in served.document["paths"].items():
        if "{" not in path:
            continue
        address = path
        for name in re.findall(r"{(\w+)}", path):
            address = address.replace(f"{{{name}}}", str(an_id(whose, name, path)))
        for method, said in item.items():
            if said["operationId"] in NEEDED_LATER and person is whose:
                continue
            form = said.get("requestBody", {}).get("content", {}).get("application/json")
            headers = as_token(person) if with_token(said["operationId"]) else as_session(person)
            query = {
                each["name"]: an_id(whose, "path", path)
                for each in said.get("parameters", [])
                if each["in"] == "query" and each.get("required")
            }
            if said["operationId"] in STREAMS:
                headers = as_token(person)
            with requests.request(
                method,
                served.url + API + address,
                headers=headers,
                params=query,
                json=form["example"] if form else None,
                stream=True,
                timeout=30,
            ) as answer:
                is_stream = "event-stream" in answer.headers.get("Content-Type", "")
                text = "" if is_stream else answer.text
                yield said["operationId"], (answer.status_code, text + str(answer.headers))


def an_id(whose: Somebody, name: str, path: str) -> Any:
    if name == "path":
        found = {"memory": "knowledge/notes.md", "skills": "SKILL.md"}
        return next((to for key, to in found.items() if key in path), whose.ids["path"][-1])
    if name in ("run_id", "chat_id", "thread_id"):
        return whose.ids[name][2]  # the run that has ended
    return whose.ids.get(name, ["none"])[-1]


@pytest.mark.slow
def test_bobs_objects_exist_for_bob_and_not_for_alice(served: Served) -> None:
    asked = dict(send(served, served.alice, served.bob))
    assert len(asked) > 40
    let_in = {name: answer for name, answer in asked.items() if answer[0] not in (403, 404)}
    # A chat with an unknown id is a chat without messages.
    assert let_in.pop("stream_chat", (204, ""))[0] == 204
    # Some operations check the body before the owner.
    assert {status for status, _ in let_in.values()} <= {400, 409}, let_in
    assert not [name for name, (_, text) in asked.items() if served.bob.mark in text]
    own = dict(send(served, served.bob, served.bob))
    reading = {"get_run", "get_thread", "get_agent", "get_memory_file", "get_agent_skill"}
    for name in (*reading, "list_events", "get_run_transcript", "list_revisions", "download_file"):
        assert own[name][0] == 200, (name, own[name])
        if name != "get_run":
            assert served.bob.mark in own[name][1], name


@pytest.mark.slow
@pytest.mark.both_databases
def test_everything_sent_is_answered_as_described(served: Served) -> None:
    people = (served.alice, served.bob)
    by_token = fuzz(
        served.document, served.url, as_token(served.alice), people, only=with_token, examples=2
    )
    by_session = fuzz(
        served.document,
        served.url,
        as_session(served.alice),
        people,
        only=with_session,
        examples=2,
        # `ignored_auth` removes the header that a session needs.
        checks=tuple(name for name in CHECKS if name != "ignored_auth"),
    )
    found = by_token.found + by_session.found
    assert not found, "\n\n".join(found)
    assert len(by_token.statuses) + len(by_session.statuses) + len(STREAMS) == len(
        [said for item in served.document["paths"].values() for said in item.values()]
    )


@pytest.mark.slow
def test_the_mark_would_be_found(served: Served) -> None:
    """Verify that the checks find the mark: bob reads his own data."""
    report = fuzz(
        served.document,
        served.url,
        as_token(served.bob),
        (served.bob, served.bob),
        only=lambda name: name in ("list_databases", "list_agents"),
        examples=4,
    )
    assert [said for said in report.found if served.bob.mark in said]


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_much_more_of_it(served: Served) -> None:
    people = (served.alice, served.bob)
    report = fuzz(
        served.document,
        served.url,
        as_token(served.alice),
        people,
        only=with_token,
        examples=150,
        phases=("examples", "coverage", "fuzzing", "stateful"),
        deterministic=False,
    )
    assert not report.found, "\n\n".join(report.found)
    succeeded = {
        name for name, counts in report.statuses.items() if any(200 <= s < 300 for s in counts)
    }
    assert len(succeeded) > 40  # the rest need permissions, a workspace or another server
