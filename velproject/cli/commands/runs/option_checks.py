"""Checks of the options of `vel TASK` before anything is stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from django.contrib.auth.models import User

from agents.doors.cli.console import new_console
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.findings import show_findings
from agents.doors.cli.terminal import one_line
from agents.kernel import row_hooks
from agents.middleware.definition_checks import check_named_tools
from agents.middleware.registry import known_tool_names
from agents.providers.registry import get_provider
from agents.providers.stored_keys import refresh_stored_keys
from agents.selectors.visible import agents_for, runs_for
from agents.services.agent_definitions.actions import default_provider
from agents.services.agent_definitions.settings_places import default_model_problem, settings_of
from agents.services.errors import InvalidRequest, ServiceError
from agents.services.findings import FileFinding, findings_in
from agents.settings import DataSettings
from agents.spec import AgentSpec
from sandbox.errors import SandboxSetupError
from sandbox.host_paths import writable_directory
from sandbox.linux.probe import check_host
from sandbox.own_directory.rules import FileRules
from sandbox.toolboxes.find import hold_toolbox
from sandbox.workspace import own_directory_account
from velproject.cli.commands.runs.instructions import WRITABLE_BY_ALL, say
from velproject.cli.commands.runs.task_flags import AgentOptions

DEFAULT_SKILLS = "./skills"
_MOST_SCANNED = 200


def check_options(options: AgentOptions) -> None:
    """Check options with which the run would fail later.

    Raises:
        CliError: There is no such tool, or no model.
        ToolboxError: The toolbox cannot be used.
        ProviderError: The key of the provider is missing, or the provider is not installed.
    """
    # Imported at first use: the list of tools takes 30 ms, and most commands do not need it.
    if options["approve"] and (unknown := sorted(set(options["approve"]) - known_tool_names())):
        raise CliError(
            f"--approve: there is no tool {one_line(unknown[0])!r}. "
            f"The tools are {', '.join(sorted(known_tool_names()))}."
        )
    if options["approve"]:
        given = {"profile": options["profile"]} if options["profile"] else {}
        spec = AgentSpec.model_validate({"name": "", "slug": "", **given})
        try:
            check_named_tools(spec, [("--approve", tool) for tool in options["approve"]])
        except InvalidRequest as error:
            raise CliError(error.message) from None
    settings = DataSettings.now()
    if options["toolbox"]:
        # raises ToolboxError for an unusable toolbox
        hold_toolbox(settings.toolboxes, options["toolbox"]).release()
    refresh_stored_keys()
    if not options["provider"] and not options["model"] and (problem := default_model_problem()):
        raise CliError(problem, exit_code=FAILED)
    # Raises ProviderError for a missing key and for a provider that is not installed.
    provider = options["provider"] or default_provider()
    get_provider(provider, settings_of(provider))


def warn_without_sandbox(options: AgentOptions) -> None:
    """Warn if commands cannot run on this machine. File tools and the model still work."""
    if options["no_sandbox"]:
        return
    report = check_host()
    if not report.usable:
        new_console(stderr=True).print(
            f"No sandbox on this machine, so the agent cannot run commands: {report.problems[0]} "
            "(details: vel doctor; to hide this warning: --no-sandbox)",
            style="yellow",
        )


def workspace_directory(given: Path) -> Path:
    """Return the absolute path of the directory `given`.

    Raises:
        CliError: The directory does not exist, or commands cannot or must not work in it.
    """
    place = given.expanduser().resolve()
    try:
        writable_directory(place)
        if not place.exists():
            raise CliError(
                f"--workspace {one_line(str(given))}: {one_line(str(place))} does not exist. "
                "Create it, or choose another directory."
            )
        own_directory_account(place)
    except SandboxSetupError as error:
        raise CliError(f"--workspace {one_line(str(given))}: {error}") from error
    return place


def file_rules(allow_write: Sequence[str], protect: Sequence[str]) -> FileRules:
    """Return the rules for files that the agent may also change, and for protected files."""
    try:
        return FileRules(tuple(allow_write), tuple(protect))
    except SandboxSetupError as error:
        raise CliError(f"--allow-write, --protect: {error}") from error


def skill_directories(
    given: Sequence[Path], workspace_path: str, rules: FileRules | None
) -> tuple[str, ...]:
    """Return the absolute, resolved paths. Raises an error for a directory that no run can use."""
    places = []
    for directory in given:
        place = directory.expanduser().resolve()
        if not os.access(place, os.R_OK | os.X_OK):
            raise CliError(
                f"--skills {one_line(str(directory))} cannot be read by this account. "
                "Change its mode, or choose another directory."
            )
        places.append(str(place))
    unique = tuple(dict.fromkeys(places))
    row_hooks.check_directories(unique, workspace_path, (rules or FileRules()).protects)
    return unique


def default_skill_directories(
    owner: User,
    session: str | None,
    workspace_path: str,
    rules: FileRules | None,
    *,
    accept_findings: bool,
) -> tuple[str, ...]:
    """Return `./skills`, as in the Python API, unless the session has other directories.

    Returns an empty tuple if the directory is not used. Prints on standard error that it is used,
    or why it is not.
    """
    place = Path(DEFAULT_SKILLS).resolve()
    if not place.is_dir():
        return ()
    kept = runs_for(owner).filter(thread__key=session).exclude(thread__skill_directories=[])
    if session is not None and kept.exists():
        return ()
    for directory in (place, Path.cwd()):
        if directory.stat().st_mode & WRITABLE_BY_ALL:
            say(f"{DEFAULT_SKILLS} is not used: all users can write to {directory}.")
            return ()
    try:
        found = skill_directories([place], workspace_path, rules)
        findings = [] if accept_findings else _findings_in_skills(place)
    except (CliError, ServiceError) as error:
        say(f"{DEFAULT_SKILLS} is not used: {error.message}")
        return ()
    if findings:
        show_findings(findings)
        say(
            f"{DEFAULT_SKILLS} is not used, because of these findings. Read the files, then use "
            f"--skills {DEFAULT_SKILLS} or --accept-findings."
        )
        return ()
    say(f"skills: {DEFAULT_SKILLS}")
    return found


def _findings_in_skills(place: Path) -> list[FileFinding]:
    """Return the dangers that the scanner finds in the skills at `place`. Raises `CliError`.

    Warnings are ignored: they are about texts that steer an agent, which every skill does.
    """
    files = list(islice(place.rglob("SKILL.md"), _MOST_SCANNED + 1))
    if len(files) > _MOST_SCANNED:
        raise CliError(f"it has more than {_MOST_SCANNED} skills. To use it: --skills.")
    try:
        texts = {
            str(file.relative_to(place.parent)): file.read_text(errors="replace") for file in files
        }
    except OSError as error:
        raise CliError(f"{error.strerror or error}.") from error
    return [finding for finding in findings_in(texts) if finding.severity == "danger"]


def unknown_agent(slug: str, owner: User) -> str:
    known = ", ".join(agents_for(owner).values_list("slug", flat=True)[:10])
    hint = f"Your agents: {known}" if known else "Create one: vel agents new TEMPLATE"
    return f"You have no agent {one_line(slug)!r}. {hint}"
