"""Lists with a limited count: "Select all" selects only the shown number of rows."""

from __future__ import annotations

import pytest

from agents.doors.admin import journal
from agents.models import ApiToken
from agents.services.tokens import create_token
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[ApiToken]:
    """Create three tokens, in lists that show one row a page and count to two."""
    monkeypatch.setattr(journal, "MOST_COUNTED", 2)
    monkeypatch.setattr("agents.admin.tokens.ApiTokenAdmin.list_per_page", 1)
    ada = rows.user("ada")
    return [create_token(ada, name=name)[0] for name in ("one", "two", "three")]


def revoked() -> set[str]:
    return set(ApiToken.objects.exclude(revoked_at=None).values_list("name", flat=True))


def test_an_action_on_more_than_the_page_counted_is_refused(tokens: list[ApiToken]) -> None:
    client = client_of(rows.superuser())
    assert "Select all 2 " in text_of(client.get(list_url(ApiToken)))

    response = act(client, "revoke_selected", tokens[0], select_across="1")

    assert "more than 2 " in messages_of(response)[0]
    assert revoked() == set()


def test_an_action_on_all_that_the_page_counted_is_taken(tokens: list[ApiToken]) -> None:
    tokens[2].delete()

    act(client_of(rows.superuser()), "revoke_selected", tokens[0], select_across="1")

    assert revoked() == {"one", "two"}


def test_any_number_of_ticked_rows_is_accepted(tokens: list[ApiToken]) -> None:
    act(client_of(rows.superuser()), "revoke_selected", tokens[2], select_across="0")

    assert revoked() == {"three"}
