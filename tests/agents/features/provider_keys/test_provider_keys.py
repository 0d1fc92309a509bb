"""Who may set, test and remove keys of providers, and where a key must never appear."""

from __future__ import annotations

import io
import json
import logging
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click import UsageError
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from agents.features.operations.service.support_bundle import write_bundle
from agents.features.provider_keys.actions import MANAGE, remove_key, set_key
from agents.features.provider_keys.actions import test_key as check_stored_key
from agents.features.provider_keys.doctor import check_provider_keys
from agents.features.provider_keys.models import ProviderKey
from agents.features.provider_keys.queries import KeyState, key_states
from agents.models import AuditEntry
from agents.providers.base import ProviderError
from agents.providers.registry import get_provider, key_of
from agents.providers.stored_keys import refresh_stored_keys
from agents.services.agent_definitions.actions import default_provider
from agents.services.agent_definitions.settings_places import settings_of
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from tests.agents.api.rows import client_for, make_user
from tests.agents.features.provider_keys.servers import models_server
from tests.velproject.in_process import call

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-ant-api03-" + "q7Zk" * 10 + "WXYZ"
OTHER = "sk-proj-" + "m3Pv" * 10 + "ABCD"
PAGE = "/provider-keys/"
API = "/api/v1/provider-keys"


@pytest.fixture
def ada() -> User:
    return make_user("ada", "manage_provider_keys")


def browser(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def state(provider: str = "anthropic") -> KeyState:
    return next(each for each in key_states() if each.provider == provider)


def with_settings(settings: Any, **values: Any) -> None:
    settings.VEL = {**settings.VEL, **values}


def test_each_door_refuses_people_without_the_permission(ada: User) -> None:
    set_key("anthropic", KEY, by=ada)
    eve = make_user("eve", "view_all_runs", "share_credential", "change_agent")
    page: Any = browser(eve)
    api = client_for(eve, "read", "run", "approve", "manage", "admin")
    answers = [
        page.get(PAGE),
        *(
            page.post(PAGE, {"provider": "anthropic", "action": action, "key": OTHER})
            for action in ("set", "test", "remove")
        ),
        api.get(API),
        api.get(f"{API}/anthropic"),
        api.put(f"{API}/anthropic", {"key": OTHER}, format="json"),
        api.delete(f"{API}/anthropic"),
        api.post(f"{API}/anthropic/test"),
    ]
    assert {answer.status_code for answer in answers} == {403}
    for answer in answers:
        assert "WXYZ" not in answer.content.decode()
    with pytest.raises(NotAllowed):
        set_key("anthropic", OTHER, by=eve)
    with pytest.raises(NotAllowed):
        remove_key("anthropic", by=eve)
    with pytest.raises(NotAllowed):
        check_stored_key("anthropic", by=eve)
    assert ProviderKey.objects.get().secret.reveal() == KEY
    assert PAGE not in page.get("/").content.decode()
    assert PAGE in browser(ada).get("/").content.decode()


def test_strangers_and_tokens_without_the_scope_are_refused(ada: User) -> None:
    assert Client().get(PAGE).status_code == 302
    assert Client().get(API).status_code == 401
    token = client_for(ada, "read", "run", "approve", "manage")
    assert token.get(API).status_code == 200
    assert token.put(f"{API}/openai", {"key": OTHER}, format="json").status_code == 403
    assert token.post(f"{API}/openai/test").status_code == 403
    assert token.delete(f"{API}/openai").status_code == 403
    assert not ProviderKey.objects.exists()


def test_a_form_of_another_site_changes_nothing(ada: User) -> None:
    strict = browser(ada, enforce_csrf_checks=True)
    form = {"provider": "anthropic", "action": "set", "key": KEY}
    assert strict.post(PAGE, form).status_code == 403
    token = strict.get(PAGE).context["csrf_token"]
    assert strict.post(PAGE, {**form, "csrfmiddlewaretoken": token}).status_code == 302
    assert state().in_use == "stored"


def test_a_key_is_set_replaced_and_removed_by_page(ada: User) -> None:
    client = browser(ada)
    form = {"provider": "openai", "action": "set"}
    for key in (KEY, OTHER):
        client.post(PAGE, {**form, "key": f"  {key}\n"})
        assert ProviderKey.objects.get().secret.reveal() == key
    text = client.get(PAGE).content.decode()
    assert "<code>ABCD</code>" in text
    assert "by ada" in text
    assert OTHER not in text
    assert OTHER[-5:] not in text
    client.post(PAGE, {"provider": "openai", "action": "remove"})
    assert not ProviderKey.objects.exists()
    again = client.post(PAGE, {"provider": "openai", "action": "remove"})
    assert again.status_code == 404
    assert "No key of openai is stored." in again.content.decode()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "short",
        "k" * 501,
        "two words 123",
        "line\nbreak-12345",
        "crlf\r\nx-other:1",
        "schlüssel-1234",
    ],
)
def test_texts_that_are_no_keys_are_refused_and_not_repeated(ada: User, key: str) -> None:
    set_key("anthropic", KEY, by=ada)
    with pytest.raises(InvalidRequest, match="without spaces"):
        set_key("anthropic", key, by=ada)
    answer = browser(ada).post(PAGE, {"provider": "anthropic", "action": "set", "key": key})
    assert answer.status_code == 400
    if key.strip():
        assert key not in answer.content.decode()
    assert ProviderKey.objects.get().secret.reveal() == KEY


def test_unknown_providers_are_refused(ada: User) -> None:
    for name in ("scripted", "openai-chat", "x" * 100, "anthropic\n"):
        with pytest.raises(NotFound, match="There is no provider"):
            set_key(name, KEY, by=ada)
    assert client_for(ada, "admin").get(f"{API}/openai").status_code == 403
    assert client_for(ada, "read").get(f"{API}/nobody").status_code == 404


def test_a_program_sets_tests_and_removes_a_key_that_it_cannot_read(
    ada: User, settings: Any
) -> None:
    client = client_for(ada, "read", "admin")
    with models_server(OTHER) as server:
        with_settings(settings, OPENAI_BASE_URL=f"{server.url}/v1")
        answer = client.put(f"{API}/openai", {"key": OTHER}, format="json")
        assert answer.status_code == 200
        shown = answer.json()
        assert (shown["in_use"], shown["ending"], shown["set_by"]) == ("stored", "ABCD", "ada")
        assert shown["stored_origin"] == server.url
        tested = client.post(f"{API}/openai/test").json()
        assert tested == {"works": True, "text": f"{server.url} accepted the key (HTTP 200)."}
        texts = [answer.content, client.get(API).content, client.get(f"{API}/openai").content]
        assert client.delete(f"{API}/openai").status_code == 204
        assert client.delete(f"{API}/openai").status_code == 404
        assert client.post(f"{API}/openai/test").status_code == 409
    assert not any(OTHER[:-4].encode() in text for text in texts)
    assert client.put(f"{API}/openai", {"key": KEY, "x": 1}, format="json").status_code == 400


def test_the_command_line_reads_a_key_from_standard_input_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{KEY}\n"))
    assert call("providers", "set-key", "anthropic") == 0
    assert ProviderKey.objects.get().secret.reveal() == KEY
    assert call("providers", "list", "--json") == 0
    assert call("providers", "list") == 0
    with pytest.raises(UsageError, match="not as an argument") as refused:
        call("providers", "set-key", "anthropic", OTHER)
    assert OTHER[:12] not in str(refused.value)
    assert ProviderKey.objects.get().secret.reveal() == KEY
    assert call("providers", "remove-key", "anthropic") == 0
    with pytest.raises(Conflict, match="no key of anthropic to test"):
        call("providers", "test", "anthropic")
    shown = "".join(capsys.readouterr())
    assert "WXYZ" in shown
    assert KEY[:-4] not in shown
    entries = AuditEntry.objects.order_by("pk")
    assert [entry.action for entry in entries] == ["provider_key.set", "provider_key.removed"]
    assert {entry.door for entry in entries} == {"cli"}


def test_a_key_is_in_no_row_dump_log_audit_entry_finding_or_bundle(
    ada: User, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = browser(ada)
    with models_server("another") as server:  # it repeats the key that it refuses
        with_settings(settings, ANTHROPIC_BASE_URL=server.url)
        client.post(PAGE, {"provider": "anthropic", "action": "set", "key": KEY})
        client.post(PAGE, {"provider": "anthropic", "action": "test"})
        page = client.get(PAGE).content.decode()
    assert "refused the key (HTTP 401): wrong key (key)" in page
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {ProviderKey._meta.db_table}")
        rows = repr(cursor.fetchall())
    dump = io.StringIO()
    call_command("dumpdata", "vel_provider_keys", stdout=dump)
    findings = list(check_provider_keys())
    log = tmp_path / "vel.log"
    log.write_text(f"somebody logs {KEY}\n{caplog.text}")
    write_bundle(tmp_path / "bundle.tar.gz", findings, log)
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        files = [archive.extractfile(entry) for entry in archive]
        bundle = "".join(file.read().decode() for file in files if file is not None)
    entries = list(AuditEntry.objects.order_by("pk").values())
    assert [entry["action"] for entry in entries] == ["provider_key.set", "provider_key.tested"]
    assert entries[1]["note"] == f"{server.url} refused the key (HTTP 401)"
    assert all(entry["kind"] == "provider_key" for entry in entries)
    texts = [page, rows, dump.getvalue(), caplog.text, repr(findings), bundle, repr(entries)]
    for text in [*texts, repr(key_states()), repr(settings_of("anthropic"))]:
        assert KEY not in text
        assert KEY[:-4] not in text


def test_the_settings_and_the_environment_precede_a_stored_key(
    ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key("openai", KEY, by=ada)
    assert key_of("openai", settings_of("openai")) == KEY
    assert state("openai").in_use == "stored"
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    assert key_of("openai", settings_of("openai")) == "of-the-environment"
    with_settings(settings, OPENAI_API_KEY=OTHER)
    assert key_of("openai", settings_of("openai")) == OTHER
    found = state("openai")
    assert (found.in_use, found.ending, found.is_stored) == ("settings", "ABCD", True)
    text = browser(ada).get(PAGE).content.decode()
    assert "It is not used, because OPENAI_API_KEY is set." in text


@pytest.mark.parametrize(
    "moved",
    [
        "https://api.openai.com.example.org/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:444",
    ],
)
def test_a_new_base_url_does_not_get_the_key(ada: User, settings: Any, moved: str) -> None:
    set_key("openai", KEY, by=ada)
    with_settings(settings, OPENAI_BASE_URL="https://api.openai.com/v2")  # the same server
    assert key_of("openai", settings_of("openai")) == KEY
    with_settings(settings, OPENAI_BASE_URL=moved)
    for name in ("openai", "openai-chat", "openai-responses"):
        with pytest.raises(ProviderError, match=r"is for https://api\.openai\.com") as caught:
            get_provider(name, settings_of(name))
        assert caught.value.code == "unusable_key"
        assert KEY[:12] not in caught.value.message
    with pytest.raises(Conflict, match="Not tested"):
        check_stored_key("openai", by=ada)
    found = state("openai")
    assert found.in_use == "none"
    assert "does not get it" in found.problem
    assert "does not get it" in browser(ada).get(PAGE).content.decode()
    set_key("openai", OTHER, by=ada)
    assert key_of("openai", settings_of("openai")) == OTHER


def test_a_key_that_cannot_be_decrypted_is_reported_and_not_used(ada: User, settings: Any) -> None:
    set_key("anthropic", KEY, by=ada)
    with_settings(settings, SECRET_KEYS=("another-secret-key-of-this-installation",))
    refresh_stored_keys()
    with pytest.raises(ProviderError, match="cannot be decrypted") as caught:
        key_of("anthropic", settings_of("anthropic"))
    assert caught.value.code == "unusable_key"
    assert "cannot be decrypted" in browser(ada).get(PAGE).content.decode()
    [finding] = check_provider_keys()
    assert "cannot be decrypted" in finding.detail


def test_a_stored_key_of_anthropic_makes_it_the_default_provider(ada: User) -> None:
    assert default_provider() == "scripted"
    set_key("openai", KEY, by=ada)
    assert default_provider() == "scripted"
    set_key("anthropic", KEY, by=ada)
    assert default_provider() == "anthropic"
    remove_key("anthropic", by=ada)
    assert default_provider() == "scripted"


def test_one_provider_never_gets_the_key_of_another(ada: User) -> None:
    set_key("anthropic", KEY, by=ada)
    set_key("openai", OTHER, by=ada)
    assert key_of("anthropic", settings_of("anthropic")) == KEY
    assert key_of("openai", settings_of("openai-chat")) == OTHER
    assert key_of("google", settings_of("google")) is None


def test_a_short_key_shows_no_characters(ada: User) -> None:
    set_key("anthropic", "abcd1234", by=ada)
    assert state().ending == ""
    assert "1234" not in browser(ada).get(PAGE).content.decode().partition("<h1>")[2]


def test_the_author_can_be_deleted_and_the_key_stays(ada: User) -> None:
    set_key("anthropic", KEY, by=ada)
    ada.delete()
    assert replace(state(), set_at=None).set_by == ""
    assert ProviderKey.objects.get().secret.reveal() == KEY


def test_an_inactive_account_manages_nothing(ada: User) -> None:
    ada.is_active = False
    with pytest.raises(NotAllowed, match=MANAGE):
        set_key("anthropic", KEY, by=ada)


def test_audit_entries_name_the_server_and_the_person(ada: User) -> None:
    set_key("anthropic", KEY, by=ada)
    remove_key("anthropic", by=ada)
    entries = AuditEntry.objects.order_by("pk")
    assert [(entry.actor, entry.target) for entry in entries] == [
        ("ada", "anthropic at https://api.anthropic.com")
    ] * 2
    assert KEY[:12] not in json.dumps([[entry.changes, entry.note] for entry in entries])
