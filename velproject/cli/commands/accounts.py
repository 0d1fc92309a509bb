"""`vel user`, `vel token` and `vel secrets`: accounts, their tokens, and stored secrets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from agents.doors.cli.boot import database, with_database
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.prompting import interruptible
from agents.doors.cli.terminal import one_line

with late_imports:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Permission, User
    from django.contrib.auth.password_validation import validate_password
    from django.core.exceptions import ValidationError
    from django.db import transaction
    from django.utils import timezone

    from agents.doors.cli.console import new_console
    from agents.models import ApiToken
    from agents.services.audit import record
    from agents.services.secrets import rotate_secrets
    from agents.services.tokens import create_token, revoke_token

SCOPES = ["read", "run", "approve", "manage", "admin", "mcp"]


@click.group(short_help="Create accounts for the web pages and the API.")
def user() -> None:
    """Manage accounts for the web pages and the API."""


@user.command("create")
@click.argument("username", metavar="NAME")
@persist_option
@click.option("--admin", is_flag=True, help="Give it all permissions, including the admin.")
@click.option("--approver", is_flag=True, help="Let it decide the requests of all runs.")
@click.option("--email", default="", help="E-mail address of the account.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def create_user(
    username: str,
    persist: Path | None,
    admin: bool,
    approver: bool,
    email: str,
    password_stdin: bool,
) -> None:
    """Create an account, or give an existing one without a password its first password."""
    if password_stdin:
        with interruptible():
            password = sys.stdin.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        with interruptible():
            password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError("Standard input is not a terminal: use --password-stdin.")
    with database(persist), transaction.atomic():
        account = _save_account(username, password, admin=admin, email=email, approver=approver)
        more = " as administrator" if account.is_superuser else ""
        print(f"{one_line(username)} can sign in{more}.")


def _save_account(username: str, password: str, *, admin: bool, approver: bool, email: str) -> User:
    """Create the account, or set the first password of an account without one.

    An account that has a password is not changed: otherwise, `vel` could take over accounts.
    """
    users = get_user_model()
    user = users.objects.select_for_update().filter(username=username).first()
    if user is None:
        user = users(username=username)
        user.set_unusable_password()
    elif user.has_usable_password():
        raise CliError(
            f"{one_line(username)!r} already has a password. Change it in the admin or with "
            "`python manage.py changepassword`."
        )
    user.email = email or user.email
    try:
        validate_password(password, user)
        user.set_password(password)
        user.is_superuser = admin or user.is_superuser
        user.is_staff = user.is_staff or user.is_superuser
        user.full_clean()
    except ValidationError as error:
        raise CliError(" ".join(error.messages)) from None
    is_new = user._state.adding
    user.save()
    record(
        "user.created" if is_new else "user.changed",
        user,
        changes={
            "password": (None, "set"),
            "is_superuser": (None, user.is_superuser),
            "approves": (None, approver),
        },
    )
    if approver:
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label="agents", codename="approve_toolcall")
        )
    return user


@click.group(short_help="Create, list and revoke API tokens.")
def token() -> None:
    """Manage tokens for the API."""


@token.command("create")
@click.argument("username", metavar="USER")
@with_database
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("read", "run"),
    show_default=True,
    help="What the token may do (docs/reference/rest-api.md); repeat for several.",
)
@click.option("--name", default="", help="Purpose of the token.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=90,
    show_default=True,
    help="Days until it expires.",
)
def create_api_token(username: str, scopes: tuple[str, ...], name: str, days: int) -> None:
    """Create a token for USER and print it. It is not shown again."""
    token, secret = create_token(user_named(username), name=name, scopes=scopes, days=days)
    print(
        f"Token of {one_line(username)} for {', '.join(token.scopes)}, for {days} days. "
        "It is shown only once:",
        file=sys.stderr,
    )
    print(secret)  # alone on standard output, for scripts


@token.command("list")
@click.argument("username", metavar="[USER]", required=False)
@with_database
@json_option
def list_tokens(username: str | None, as_json: bool) -> None:
    """List tokens with their first characters."""
    tokens = ApiToken.objects.select_related("user")
    if username is not None:
        tokens = tokens.filter(user=user_named(username))
    console = new_console()
    for token in tokens:
        if as_json:
            print(
                json.dumps(
                    {
                        "prefix": token.prefix,
                        "user": token.user.get_username(),
                        "name": token.name,
                        "scopes": token.scopes,
                        "state": state(token),
                        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
                    }
                )
            )
            continue
        console.print(
            f"{token.prefix}…  {one_line(token.user.get_username(), 30)}  "
            f"{','.join(token.scopes)}  {state(token)}  {one_line(token.name)}"
        )


@token.command("revoke")
@click.argument("prefix")
@with_database
def revoke(prefix: str) -> None:
    """Revoke the token that starts with PREFIX, which has at least 6 characters."""
    valid = ApiToken.objects.filter(revoked_at=None)
    found = list(valid.filter(prefix__startswith=prefix)[:2]) if len(prefix) >= 6 else []
    if len(found) != 1:
        raise CliError(
            f"{'Several tokens start' if len(found) > 1 else 'No valid token starts'} with "
            f"{one_line(prefix)!r}. Copy the prefix from `vel token list`."
        )
    revoke_token(found[0].pk)
    print(f"{found[0].prefix}… is revoked.")


def user_named(username: str) -> User:
    user = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CliError(
            f"There is no user {one_line(username)!r}. Create one: vel user create "
            f"{one_line(username)}"
        )
    return user


def state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "valid"


@click.group(short_help="Encrypt stored passwords with a new key.")
def secrets() -> None:
    """Manage stored secrets, such as the URLs of databases."""


@secrets.command("rotate")
@with_database
def rotate() -> int:
    """Encrypt all stored secrets with the first key of VEL_SECRET_KEYS.

    Put the new key in front of the old one, restart all processes of Vel, run this, and then remove
    the old key.
    """
    done = rotate_secrets()
    print(f"Encrypted with the first key: {done.encrypted}.")
    for place in done.unreadable:
        print(
            f"vel: {one_line(place)} cannot be decrypted with any key. Add its key to "
            "VEL_SECRET_KEYS and run this again, or enter the secret again.",
            file=sys.stderr,
        )
    return FAILED if done.unreadable else OK


COMMANDS = (user, token, secrets)
