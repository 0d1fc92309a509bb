"""The actions of `vel memory`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from agents.models import Agent
from agents.selectors.memory import (
    list_memory_entries,
    memory_revisions,
    memory_state,
    revision_content,
)
from agents.services import memory_changes
from agents.services.memory_bundle import ImportPlan, carry_out_import, export_memory, plan_import
from memory.errors import NoSuchFile
from memory.limits import size_of
from memory.paths import InvalidPath
from velproject.cli.console import print_table
from velproject.cli.errors import CliError
from velproject.cli.find import agent_named
from velproject.cli.local_user import local_user
from velproject.cli.suspicions import show_suspicions
from velproject.cli.terminal import one_line, visible

DOOR = "cli"


def list_files(*, agent: str, directory: str, as_json: bool) -> None:
    """By path."""
    entries = list_memory_entries(_agent(agent).pk, directory)
    if as_json:
        for entry in entries:
            print(json.dumps(asdict(entry), default=datetime.isoformat))
        return
    if not entries:
        print("No files there.", file=sys.stderr)
        return
    print_table(
        ("BYTES", "CHANGED", "FILE"),
        ((f"{e.size_bytes:,}", f"{e.updated_at:%Y-%m-%d %H:%M}", e.path) for e in entries),
    )


def read(*, agent: str, path: str, revision: int | None) -> None:
    """The content alone on standard output."""
    found = _agent(agent)
    try:
        if revision is None:
            content = memory_state(found.pk, path).content
        else:
            content = revision_content(found.pk, path, revision)
    except (InvalidPath, NoSuchFile) as problem:
        raise CliError(str(problem)) from None
    if content is None:
        then = f" at revision {revision}" if revision else ""
        raise CliError(f"There is no {one_line(path)} in the memory{then}.")
    if sys.stdout.isatty():
        print(visible(content))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode())


def write(*, agent: str, path: str, content: str, reason: str, base: int | None) -> None:
    """As the local user."""
    number = memory_changes.write_file(
        _agent(agent),
        path,
        content,
        by=local_user(),
        base_revision=base,
        source=DOOR,
        reason=reason,
    )
    print(f"{path} is at revision {number}.")


def append(*, agent: str, path: str, content: str, reason: str) -> None:
    """As the local user."""
    number = memory_changes.append_to_file(
        _agent(agent), path, content, by=local_user(), source=DOOR, reason=reason
    )
    print(f"{path} is at revision {number}.")


def delete(*, agent: str, path: str) -> None:
    """As the local user."""
    number = memory_changes.delete_file(_agent(agent), path, by=local_user(), source=DOOR)
    print(f"{path} is deleted (revision {number}).")


def history(*, agent: str, path: str, as_json: bool) -> None:
    """The latest first."""
    try:
        revisions = memory_revisions(_agent(agent).pk, path)
    except InvalidPath as problem:
        raise CliError(str(problem)) from None
    if as_json:
        for revision in revisions:
            print(json.dumps(asdict(revision), default=datetime.isoformat))
        return
    if not revisions:
        raise CliError(f"{one_line(path)} has no revisions.")
    print_table(
        ("REVISION", "OPERATION", "BYTES", "WHEN", "BY", "THROUGH", "REASON"),
        (
            (
                str(revision.number),
                revision.operation,
                "–" if revision.is_deleted else f"{revision.size_bytes:,}",
                f"{revision.created_at:%Y-%m-%d %H:%M}",
                one_line(revision.by or "–", 30),
                revision.source,
                one_line(revision.reason, 60),
            )
            for revision in revisions
        ),
    )


def restore(*, agent: str, path: str, revision: int) -> None:
    """As the local user."""
    number = memory_changes.restore_revision(
        _agent(agent), path, revision, by=local_user(), source=DOOR
    )
    print(f"{path} is as at revision {revision} (now revision {number}).")


def export(*, agent: str, directory: Path) -> None:
    """Everything, the two read-only files too."""
    paths = export_memory(_agent(agent).pk, directory)
    print(f"{len(paths)} files are in {directory}.")


def import_folder(
    *, agent: str, directory: Path, with_prompt: bool, accept_findings: bool, apply: bool
) -> None:
    """Say what would change; with `apply` change it."""
    user = local_user()
    found = _agent(agent)
    memory_changes.check_may_change(found, user)
    plan = plan_import(found, directory, with_prompt=with_prompt)
    _show(plan)
    if not plan.files and plan.prompt is None:
        print("Nothing to import: the memory has it all.")
        return
    if not apply:
        print("Nothing is changed yet: --apply imports it.")
        return
    revisions = carry_out_import(found, plan, by=user, accept_findings=accept_findings)
    more = " and the prompt" if plan.prompt is not None else ""
    print(f"{len(revisions)} files{more} are imported.")


def _show(plan: ImportPlan) -> None:
    for file in plan.files:
        what = "added" if file.before is None else "changed"
        print(f"{what:>9}  {file.path}  {size_of(file.content):,} bytes")
    if plan.prompt is not None:
        print(f"{'prompt':>9}  AGENTS.md  {size_of(plan.prompt.after):,} bytes")
    for path in plan.same:
        print(f"{'same':>9}  {path}")
    for path in plan.kept:
        print(f"{'kept':>9}  {path}")
    for name in plan.ignored:
        print(f"{'ignored':>9}  {one_line(name)}")
    for warning in plan.warnings:
        print(warning, file=sys.stderr)
    show_suspicions(plan.suspicions)


def _agent(agent: str) -> Agent:
    return agent_named(local_user(), agent)
