"""Parsing and checks of those options of `vel TASK` that do not need Django."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

PROVIDERS = ["anthropic", "openai", "openai-responses", "openai-chat", "google", "scripted"]
SCHEMA_BYTES = 1_000_000

_OF_THE_AGENT = (
    *("provider", "model", "fallback", "profile", "no_sandbox", "toolbox", "approve"),
    *("max_turns", "max_cost", "timeout", "no_instructions", "accept_findings"),
)
"""Options that are settings of an agent."""


class Dollars(click.ParamType):
    """Option type for a positive amount of US dollars."""

    name = "usd"

    def convert(self, value: Any, param: Any, ctx: Any) -> Decimal:
        text = str(value)
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or not Decimal(text):
            self.fail(f"{text!r} is not an amount. Expected US dollars, such as 0.50.", param, ctx)
        return Decimal(text)


def read_databases(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the names and URLs in NAME=URL, or NAME=env:VARIABLE to hide a URL.

    No error shows a value: any part of it may be a mistyped password.
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, url = value.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", name):
            raise click.BadParameter(
                "expected NAME=URL, such as shop=sqlite:///shop.db (NAME: letters, digits, _, -)."
            )
        if name in found:
            raise click.BadParameter(f"{name} is given twice.")
        if url.startswith("env:"):
            variable = url.removeprefix("env:")
            url = os.environ.get(variable, "").strip()
            if not url:
                is_name = re.fullmatch("[A-Za-z0-9_]{1,100}", variable)
                where = f"variable {variable}" if is_name else "variable"
                raise click.BadParameter(f"{name}: the environment {where} is not set.")
        if not re.match(r"[a-z][a-z0-9+]*:", url):
            raise click.BadParameter(f"{name}: expected a URL, such as postgresql://host/name.")
        found[name] = url
    return tuple(found.items())


def read_schema(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> dict[str, Any] | None:
    """Return the JSON Schema in a file. The check of the request validates it."""
    if value is None:
        return None
    try:
        with Path(value).open("rb") as file:
            schema = json.loads(file.read(SCHEMA_BYTES + 1))
    except OSError as error:
        raise click.BadParameter(f"{value!r} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{value!r} is not valid JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise click.BadParameter(f"{value!r} is not a JSON Schema: expected a JSON object.")
    return schema


def read_context(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return the names and values in NAME=VALUE. The values are texts."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r}: expected NAME=VALUE, such as customer=Acme.")
        if name in found:
            raise click.BadParameter(f"{name} is given twice.")
        found[name] = text
    return found


def read_fallbacks(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the pairs in PROVIDER:MODEL. The check of the agent validates the names."""
    found = []
    for value in values:
        provider, colon, model = value.partition(":")
        if not colon or not provider or not model:
            raise click.BadParameter(
                f"{value!r}: expected PROVIDER:MODEL, such as openai:gpt-6.2-sol."
            )
        found.append((provider, model))
    return tuple(found)


def _check_going_on(goes_on: Sequence[str], **given: Any) -> None:
    """Raise `click.UsageError` for options that a continued session does not take."""
    if len(goes_on) > 1:
        raise click.UsageError("--continue and --resume cannot be combined: use one of them.")
    names = {"rules": "--allow-write and --protect"}
    for name, value in given.items():
        if value:
            raise click.UsageError(
                f"{names.get(name, f'--{name}')} cannot be combined with {goes_on[0]}: the session "
                "keeps its own."
            )


def agent_flags(flags: Mapping[str, Any], databases: Sequence[object]) -> list[str]:
    """Return the given options that are settings of an agent."""
    given = [name for name in _OF_THE_AGENT if flags[name]] + ["database"] * bool(databases)
    return ["--" + name.replace("_", "-") for name in given]


def check_together(
    flags: Mapping[str, Any],
    *,
    agent: str | None,
    databases: Sequence[tuple[str, str]],
    workspace: Path | None,
    session: str | None,
    rules: Sequence[str],
    skills: Sequence[Path],
    uploads: Sequence[Path],
    context: Mapping[str, str],
    goes_on: Sequence[str] = (),
) -> None:
    """Raise `click.UsageError` for options that contradict each other, and for missing files.

    A session id with a wrong length is also an error. `goes_on` has `--continue` and `--resume`, if
    they were given.
    """
    if goes_on:
        _check_going_on(
            goes_on,
            agent=agent, session=session, rules=rules, skills=skills, context=context,
        )  # fmt: skip
    given = agent_flags(flags, databases)
    if agent is not None and given:
        raise click.UsageError(
            f"{', '.join(given)} cannot be combined with --agent, which has its own settings."
        )
    if flags["toolbox"] and flags["no_sandbox"]:
        raise click.UsageError("--toolbox needs the sandbox: remove it, or remove --no-sandbox.")
    if flags["profile"] == "sandbox_only" and flags["no_sandbox"]:
        raise click.UsageError("--profile sandbox_only needs the sandbox: remove --no-sandbox.")
    if flags["profile"] == "sandbox_only" and databases:
        raise click.UsageError(
            "--profile sandbox_only has no tools for databases: remove --database."
        )
    if workspace is not None and flags["no_sandbox"]:
        raise click.UsageError("--workspace needs the sandbox: remove it, or remove --no-sandbox.")
    if workspace is not None and workspace.exists() and not workspace.is_dir():
        raise click.UsageError(f"--workspace {workspace} is a file. Expected a directory.")
    if rules and workspace is None and session is None:
        raise click.UsageError("--allow-write and --protect need --workspace DIR.")
    if session is not None and not 0 < len(session) <= 200:
        raise click.UsageError(f"--session: expected 1 to 200 characters, got {len(session)}.")
    for directory in skills:
        if not directory.is_dir():
            what = "is not a directory" if directory.exists() else "does not exist"
            raise click.UsageError(f"--skills {directory} {what}. Expected a directory of skills.")
    for file in uploads:
        if not file.is_file():
            what = "is not a file" if file.exists() else "does not exist"
            raise click.UsageError(f"--upload {file} {what}. Expected a file.")
