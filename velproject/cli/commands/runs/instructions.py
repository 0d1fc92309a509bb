"""The AGENTS.md files of a directory, whose text `vel TASK` adds to the prompt."""

from __future__ import annotations

import sys
from pathlib import Path

from agents.doors.cli.findings import show_findings
from agents.doors.cli.terminal import one_line
from agents.middleware.registry import DEFAULT_PROMPT
from agents.services.agent_definitions.prompt_import import (
    PROMPT,
    prompt_of,
    read_agents_files,
)
from agents.services.errors import InvalidRequest
from agents.services.findings import findings_in

HEADING = "## Instructions of this directory"
WRITABLE_BY_ALL = 0o002


def instructions_of(directory: Path, *, accept_findings: bool = False) -> str:
    """Return the text of the AGENTS.md files that apply to `directory`; empty if not used.

    Prints the names of the files, or why they are not used, on standard error.
    """
    try:
        if directory.stat().st_mode & WRITABLE_BY_ALL:
            if (directory / PROMPT).exists():
                say(f"{PROMPT} is not used: all users can write to {directory}.")
            return ""
        files = read_agents_files(directory)
        text = prompt_of(files)
    except OSError as error:
        say(f"{PROMPT} is not used: {error.strerror or error}.")
        return ""
    except InvalidRequest as error:
        say(f"{PROMPT} is not used: {error.message}")
        return ""
    if not files:
        return ""
    if "\x00" in text:
        say(f"{PROMPT} is not used: it contains a NUL character.")
        return ""
    findings = findings_in({file.path: file.content for file in files})
    if findings and not accept_findings:
        show_findings(findings)
        say(f"{PROMPT} is not used, because of these findings. To use it: --accept-findings")
        return ""
    say(f"instructions: {', '.join(file.path for file in files)}")
    return text


def prompt_with(prompt: str, instructions: str, name: str) -> str:
    """Return `prompt` with `instructions` in place of those that it has for a directory.

    Args:
        prompt: The agent's prompt, as this function has returned it or a person has changed it.
        instructions: The text for the present directory; "" removes the old one.
        name: The agent's name, for the default prompt.

    Returns:
        The new prompt; "" if only the default prompt is left.
    """
    own = prompt.partition(HEADING)[0].rstrip()
    default = DEFAULT_PROMPT.format(name=name)
    if not instructions:
        return "" if own == default else own
    return f"{own or default}\n\n{HEADING}\n\n{instructions}"


def say(text: str) -> None:
    print(one_line(text, 500), file=sys.stderr)
