"""`vel providers`: the keys of model providers."""

from __future__ import annotations

import json
import sys

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.errors import FAILED, OK, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.prompting import interruptible
from agents.doors.cli.terminal import one_line

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.features.provider_keys.actions import LONGEST, remove_key, set_key, test_key
    from agents.features.provider_keys.queries import key_states


@click.group(short_help="Set, test and remove the keys of model providers.")
def providers() -> None:
    """Manage stored keys of model providers. PROVIDER is anthropic, openai or google.

    A key of the settings or the environment is used instead of a stored one.
    """


@providers.command("list")
@with_database
@json_option
def list_providers(as_json: bool) -> None:
    """List the providers, and where their keys come from. Keys are not shown."""
    states = key_states()
    if as_json:
        for state in states:
            print(
                json.dumps(
                    {
                        "provider": state.provider,
                        "origin": state.origin,
                        "in_use": state.in_use,
                        "ending": state.ending,
                        "stored": state.is_stored,
                        "set_by": state.set_by,
                        "set_at": state.set_at.isoformat() if state.set_at else None,
                        "problem": state.problem,
                    }
                )
            )
        return
    print_table(
        ("PROVIDER", "SERVER", "KEY IN USE", "ENDS IN", "STORED"),
        (
            (
                state.provider,
                Text(one_line(state.origin)),
                state.setting if state.in_use == "settings" else state.in_use,
                Text(one_line(state.ending)),
                Text(f"{state.set_at:%Y-%m-%d}" if state.set_at else "no"),
            )
            for state in states
        ),
    )
    for state in states:
        if state.problem:
            print(f"vel: {state.provider}: {one_line(state.problem, 500)}", file=sys.stderr)


@providers.command("set-key", context_settings={"allow_extra_args": True})
@click.argument("provider")
@with_database
def set_provider_key(provider: str) -> None:
    """Store the key of PROVIDER. It is read from a prompt or from standard input."""
    if click.get_current_context().args:  # click's own message would repeat the key
        raise click.UsageError(
            "Give the key at the prompt or on standard input, not as an argument."
        )
    with interruptible():
        if sys.stdin.isatty():
            key = click.prompt("Key", hide_input=True, err=True)
        else:
            key = sys.stdin.readline(LONGEST + 2).rstrip("\r\n")
    row = set_key(provider, key, by=None)
    print(f"The key of {row.provider} for {one_line(row.origin)} is stored.")


@providers.command("remove-key")
@click.argument("provider")
@with_database
def remove_provider_key(provider: str) -> None:
    """Remove the stored key of PROVIDER."""
    remove_key(provider, by=None)
    print(f"The stored key of {provider} is removed.")


@providers.command("test")
@click.argument("provider")
@with_database
def test_provider_key(provider: str) -> int:
    """Ask PROVIDER whether it accepts the key in use. This costs no tokens."""
    found = test_key(provider, by=None)
    if found.works:
        print(one_line(found.text, 500))
        return OK
    raise CliError(one_line(found.text, 500), exit_code=FAILED)


COMMANDS = (providers,)
