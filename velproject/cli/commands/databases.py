"""The actions of `vel databases`, and what `--database` gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from django.db.models import Q
from django.views.decorators.debug import sensitive_variables

from agents.models import DatabaseConnection
from agents.secret_text import SecretText
from agents.selectors.databases import own_connections, shown_address
from agents.services.databases import remove_connection, seal_url
from agents.services.errors import InvalidRequest
from velproject.cli.console import new_console
from velproject.cli.errors import CliError
from velproject.cli.local_user import local_user
from velproject.cli.terminal import one_line


@sensitive_variables()
def sealed_databases(given: Sequence[tuple[str, str]]) -> tuple[tuple[str, SecretText], ...]:
    """Names and encrypted URLs. What cannot be connected to is refused here, with its name."""
    sealed = []
    for name, url in given:
        try:
            sealed.append((name, seal_url(_from_here(url))))
        except InvalidRequest as error:
            reason = error.message.removeprefix("url: ")
            raise CliError(f"--database {one_line(name)}: {reason}") from None
    return tuple(sealed)


def _from_here(url: str) -> str:
    """A file's relative path as an absolute one: a run can be resumed from elsewhere."""
    for kind in ("sqlite", "duckdb"):
        path = url.removeprefix(f"{kind}:///")
        if path != url and path and not path.startswith(("/", ":")):
            return f"{kind}:///{Path.cwd() / path}"
    return url


def list_databases(*, as_json: bool) -> None:
    """Those of the admin and one's own. Passwords are not shown to anybody."""
    mine = Q(pk__in=own_connections(local_user()).values("pk"))
    rows = DatabaseConnection.objects.filter(Q(agent=None) | mine).prefetch_related("agents")
    console = new_console()
    for row in rows:
        agents = sorted(agent.slug for agent in row.agents.all())
        if as_json:
            place = shown_address(row)
            print(
                json.dumps(
                    {"name": row.name, "own": row.is_private, "address": place, "agents": agents}
                )
            )
            continue
        whose = "own" if row.is_private else "shared"
        console.print(
            f"{row.name}  {whose}  {one_line(shown_address(row))}  "
            f"{one_line(', '.join(agents)) or 'no agent'}"
        )


def remove(*, name: str) -> None:
    """Only one's own: those of the admin are removed there."""
    user = local_user()
    row = own_connections(user).filter(name=name).first()
    if row is None:
        raise CliError(
            f"There is no database {one_line(name)!r} of your own: `vel databases list` shows "
            "them; those of the admin are removed in the admin."
        )
    remove_connection(row.pk, by=user)
    print(f"{row.name} is removed; nothing of it is stored any more.")
