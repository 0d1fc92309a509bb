"""A request's input as edited by a person: in the editor, from a file, or typed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from click.exceptions import ClickException

from agents.doors.cli.errors import CliError
from agents.hidden_text import escaped_text, unescaped_text
from agents.kernel.proposals import ProposalKind, proposal_kind, run_request_kind
from agents.models import ApprovalRequest


def has_editor() -> bool:
    return bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def parsed_input(text: str) -> dict[str, Any]:
    """Return JSON that a person has typed. Raises `CliError`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CliError(f"The input is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CliError("The input must be a JSON object, the whole that should run instead.")
    return value


def content_of(path: Path, kind: ProposalKind) -> dict[str, Any]:
    """Return the text of a file as the edited input of a proposal. Raises `CliError`."""
    with path.open("rb") as file:
        data = file.read(kind.most_bytes + 1)
    if len(data) > kind.most_bytes:
        raise CliError(f"{path} is larger than {kind.most_bytes:,} bytes, the most for a file.")
    try:
        return {"content": data.decode()}
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8 text.") from None


def edited_in_editor(request: ApprovalRequest) -> dict[str, Any] | None:
    r"""Return the input after $VISUAL or $EDITOR; None if the person left without saving.

    A proposal is edited as its text, with hidden characters as escapes (`\u{202e}`); other input as
    JSON.
    """
    kind = proposal_kind(request)
    if kind is not None:
        before = escaped_text(kind.text(request))
        suffix = Path(kind.file_name(request)).suffix or ".md"
    elif (about_run := run_request_kind(request)) is not None:
        before, suffix = json.dumps(about_run.editable(request), indent=2), ".json"
    else:
        before, suffix = json.dumps(request.input, indent=2, ensure_ascii=True), ".json"
    try:
        after = click.edit(before, extension=suffix)
    except ClickException as error:
        raise CliError(f"The editor failed: {error.message}") from None
    if after is None:
        return None
    return {"content": unescaped_text(after)} if kind is not None else parsed_input(after)
