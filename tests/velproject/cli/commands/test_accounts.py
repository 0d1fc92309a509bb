"""`vel user create` gives an account its first password, and takes nothing away."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import User

from tests.velproject.in_process import call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("options", "email"),
    [([], "old@example.com"), (["--email", "new@example.com"], "new@example.com")],
)
def test_the_first_password_keeps_the_other_fields(
    monkeypatch: pytest.MonkeyPatch, options: list[str], email: str
) -> None:
    User.objects.create_user("ada", email="old@example.com", is_staff=True)
    monkeypatch.setattr("sys.stdin", io.StringIO("a long enough pass 7\n"))

    assert call("user", "create", "ada", "--password-stdin", *options) == 0

    ada = User.objects.get()
    assert ada.check_password("a long enough pass 7")
    assert (ada.is_staff, ada.is_superuser, ada.email) == (True, False, email)
