"""Stored secrets: encrypted, rotated, and never shown by accident."""

from __future__ import annotations

import copy
import io
import json
import pickle
from typing import Any

import pytest
from django.core.exceptions import FieldError, ImproperlyConfigured, ValidationError
from django.core.management import call_command
from django.db import connection

from agents.features.databases.models import DatabaseConnection
from agents.models import AuditEntry
from agents.secret_text import SecretText, SecretUnreadable
from agents.services.secrets import rotate_secrets

PLAIN = "postgresql+psycopg://reader:hunter2@db.example.org/shop"
OLD, NEW = "o" * 8 + "ld key 0123456789 abcdefghij", "n" * 8 + "ew key 0123456789 abcdefghij"


def with_keys(settings: Any, *keys: str) -> None:
    settings.VEL = {**settings.VEL, "SECRET_KEYS": keys}


def stored(pk: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT url FROM vel_databases_databaseconnection WHERE id = %s", [pk])
        return str(cursor.fetchone()[0])


def row(name: str = "shop") -> DatabaseConnection:
    return DatabaseConnection.objects.create(name=name, url=SecretText.seal(PLAIN))


def test_a_sealed_text_can_be_revealed_and_never_repeats():
    one, other = SecretText.seal(PLAIN), SecretText.seal(PLAIN)
    assert one.reveal() == other.reveal() == PLAIN
    assert one._token != other._token
    assert one.same_as(other)
    assert not one.same_as(SecretText.seal("another"))


@pytest.mark.parametrize("show", [repr, str, "{}".format, lambda s: f"{s!r:>20}", json.dumps, vars])
def test_no_representation_of_an_object_shows_it(show):
    secret = SecretText.seal(PLAIN)
    try:
        shown = str(show(secret))
    except TypeError as error:
        shown = str(error)
    assert "hunter2" not in shown
    assert secret._token[:16] not in shown


def test_it_is_not_pickled_and_a_copy_is_itself():
    secret = SecretText.seal(PLAIN)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)
    assert copy.deepcopy([secret])[0] is secret


@pytest.mark.django_db
def test_the_row_holds_ciphertext_alone_and_gives_it_back():
    kept = row()
    assert "hunter2" not in stored(kept.pk)
    assert "postgresql" not in stored(kept.pk)
    kept.refresh_from_db()
    assert kept.url.reveal() == PLAIN


@pytest.mark.django_db
def test_plain_text_is_never_stored_by_mistake():
    with pytest.raises(TypeError, match="takes a SecretText") as raised:
        DatabaseConnection.objects.create(name="shop", url=PLAIN)  # type: ignore[misc]
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ValidationError):
        DatabaseConnection._meta.get_field("url").to_python(PLAIN)


@pytest.mark.django_db
@pytest.mark.parametrize("lookup", ["url", "url__startswith", "url__regex", "url__in", "url__gt"])
def test_no_query_can_feel_its_way_along_a_ciphertext(lookup):
    row()
    with pytest.raises((FieldError, TypeError)):
        DatabaseConnection.objects.filter(**{lookup: "gAAAA"}).exists()


@pytest.mark.django_db
def test_a_dump_holds_no_secret_and_loads_without_one():
    kept = row()
    out = io.StringIO()
    call_command("dumpdata", "vel_databases.databaseconnection", stdout=out)
    assert json.loads(out.getvalue())[0]["fields"]["url"] == ""
    assert stored(kept.pk)[:16] not in out.getvalue()


@pytest.mark.django_db
def test_a_lost_key_is_an_error_that_names_the_setting(settings):
    with_keys(settings, OLD)
    kept = row()
    with_keys(settings, NEW)
    kept.refresh_from_db()
    with pytest.raises(SecretUnreadable, match="VEL_SECRET_KEYS") as raised:
        kept.url.reveal()
    assert kept.url._token[:16] not in str(raised.value)
    assert raised.value.__suppress_context__
    with_keys(settings)
    with pytest.raises(SecretUnreadable, match="to VEL_SECRET_KEY,"):
        kept.url.reveal()


@pytest.mark.django_db
def test_a_text_changed_in_the_database_is_refused():
    kept = row()
    token = stored(kept.pk)
    for forged in (token[:-4] + "AAA=", token[:40], "nonsense", PLAIN, "ü"):
        with pytest.raises(SecretUnreadable):
            SecretText(forged).reveal()
    with pytest.raises(SecretUnreadable, match="Nothing is stored"):
        SecretText("").reveal()


@pytest.mark.django_db
def test_rotation_goes_from_the_derived_key_to_ones_own_and_on(settings):
    settings.SECRET_KEY = OLD
    kept = row()
    before = stored(kept.pk)

    with_keys(settings, NEW, OLD)  # the previous SECRET_KEY is an old key
    assert kept.url.reveal() == PLAIN
    done = rotate_secrets()

    assert (done.encrypted, done.unreadable) == (1, ())
    with_keys(settings, NEW)
    changed = kept.updated_at
    kept.refresh_from_db()
    assert kept.url.reveal() == PLAIN
    assert kept.updated_at == changed
    assert stored(kept.pk) != before
    with_keys(settings, OLD)
    with pytest.raises(SecretUnreadable):
        kept.url.reveal()


@pytest.mark.django_db
def test_rotation_skips_and_reports_unreadable_texts(settings):
    with_keys(settings, OLD)
    lost = row("lost")
    before = stored(lost.pk)
    with_keys(settings, NEW)
    row("kept")
    done = rotate_secrets()
    assert (done.encrypted, done.unreadable) == (1, ("database connection lost",))
    assert stored(lost.pk) == before
    entry = AuditEntry.objects.get(action="secrets.rotated")
    assert entry.target == "all stored secrets"
    assert entry.note == "1 encrypted with the first key; 1 that no key decrypts."


def test_fallbacks_of_djangos_key_decrypt(settings):
    settings.SECRET_KEY = OLD
    secret = SecretText.seal(PLAIN)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert secret.reveal() == PLAIN


def test_an_empty_key_is_no_key(settings):
    with_keys(settings, "")
    with pytest.raises(ImproperlyConfigured, match="VEL_SECRET_KEYS"):
        SecretText.seal(PLAIN)


def test_a_text_in_the_place_of_keys_is_refused(settings):
    settings.VEL = {**settings.VEL, "SECRET_KEYS": NEW}
    with pytest.raises(ImproperlyConfigured, match="a list of texts, got str"):
        SecretText.seal(PLAIN)
