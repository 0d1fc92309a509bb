"""The slash commands of a session, without those of features."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import cast

from django.db.models import Q
from rich.console import Console

from agents.doors.cli.errors import OK, CliError
from agents.doors.cli.questions import confirm
from agents.doors.cli.slash_commands import Session, SlashCommand
from agents.doors.cli.terminal import one_line
from agents.kernel.features import collect
from agents.middleware.registry import toolset_for
from agents.models import (
    NEVER_STARTED,
    Agent,
    Message,
    MessageRole,
    Run,
    Thread,
    WorkspaceSnapshot,
)
from agents.providers.prices import known_limits
from agents.selectors.queue import pending_for
from agents.selectors.visible import agents_for, counted_runs_for, runs_for
from agents.services.agent_definitions.actions import build_spec, default_model, default_provider
from agents.services.errors import NotFound
from agents.services.files.restoring import restore_workspace
from agents.settings import ContextSettings
from velproject.cli.commands.runs.option_checks import check_options, unknown_agent
from velproject.cli.commands.runs.option_values import PROVIDERS
from velproject.cli.commands.runs.session import clipboard, screen, shell
from velproject.cli.commands.runs.session.resuming import newest_threads
from velproject.cli.commands.runs.session.state import InteractiveSession
from velproject.cli.commands.runs.task_flags import AgentOptions

MOST_LINES = 2_000
SHOWN_SESSIONS = 10
MICRO = 1_000_000


def all_commands() -> dict[str, SlashCommand]:
    """Return the commands by name, also those of the installed features."""
    found = [*OWN, *(command for _, command in collect("cli", "SLASH_COMMANDS", skip_broken=True))]
    return {command.name: command for command in sorted(found, key=lambda each: each.name)}


def run(session: InteractiveSession, line: str) -> int:
    """Run the slash command in `line` and return the exit code.

    Raises `CliError` for an unknown command: the line is not sent to the agent as a task.
    """
    name, _, rest = line.partition(" ")
    command = all_commands().get(name.lower())
    if command is None:
        raise CliError(
            f"There is no command {one_line(name, 40)}. /help lists the commands. "
            "A task that begins with a slash needs two: //."
        )
    command.run(session, rest.strip())
    return OK


def _of(code: Callable[[InteractiveSession, str], None]) -> Callable[[Session, str], None]:
    """Return the code of a command that needs more than the features' `Session`."""
    return cast("Callable[[Session, str], None]", code)


def _help(session: InteractiveSession, rest: str) -> None:
    rows = [(f"{each.name} {each.usage}".strip(), each.help) for each in all_commands().values()]
    rows.append(("//TEXT", "Send a task that begins with a slash."))
    rows.append(("!COMMAND", "Run your own command, outside the sandbox. Type the `!`."))
    width = max(len(head) for head, _ in rows)
    session.say("\n".join(f"{head:<{width}}  {text}" for head, text in rows))


def _clear(session: InteractiveSession, rest: str) -> None:
    session.clear()


def _exit(session: InteractiveSession, rest: str) -> None:
    session.end()


def _model(session: InteractiveSession, rest: str) -> None:
    options = session.conversation.options
    if not rest:
        provider, model = model_of(session)
        session.say(f"{provider}: {model}")
        return
    if options is None:
        raise CliError(f"The agent {session.agent!r} has its own model: change it in the agent.")
    provider, colon, model = rest.partition(":")
    if not colon or provider not in PROVIDERS:
        provider, model = options["provider"] or "", rest
    if not model:
        raise CliError("Expected the name of a model, such as /model openai:gpt-6.2-sol.")
    changed = cast(AgentOptions, {**options, "provider": provider or None, "model": model})
    check_options(changed)
    session.conversation.options = changed
    session.say(f"The next task uses {provider or default_provider()}: {model}")


def model_of(session: InteractiveSession) -> tuple[str, str]:
    """Return the provider and the model of the next task."""
    options = session.conversation.options
    if options is not None:
        given = options["provider"], options["model"]
    else:
        agent = Agent.objects.get(slug=session.agent)
        given = agent.provider, agent.model
    provider = given[0] or default_provider()
    return provider, given[1] or default_model(provider)


def _agent(session: InteractiveSession, rest: str) -> None:
    agents = agents_for(session.owner).order_by("slug")
    if not rest:
        lines = [
            f"{'*' if slug == session.agent else ' '} {one_line(slug, 60)}  {one_line(name, 60)}"
            for slug, name in agents.values_list("slug", "name")[:100]
        ]
        session.say("\n".join(lines) or "No agents. Create one: `vel agents new TEMPLATE`")
        return
    if not agents.filter(slug=rest).exists():
        raise NotFound(unknown_agent(rest, session.owner))
    session.use_agent(rest)
    session.say(f"Started a new session with the agent {rest}.")


def _resume(session: InteractiveSession, rest: str) -> None:
    rows = list(newest_threads(session.owner)[:SHOWN_SESSIONS])
    if not rest:
        if not rows:
            raise CliError("There are no sessions yet.")
        for number, row in enumerate(rows, 1):
            mark = "*" if row.pk == session.thread else " "
            title = one_line(row.title or "(no title)", 80)
            session.say(f"{mark} {number:>2}  {row.created_at:%Y-%m-%d %H:%M}  {title}")
        session.say("/resume NUMBER continues one of them.", "dim")
        return
    if not (rest.isascii() and rest.isdecimal() and 0 < int(rest[:9]) <= len(rows)):
        raise CliError(f"Expected a number from 1 to {len(rows)}: /resume shows the sessions.")
    chosen = rows[int(rest) - 1]
    session.use_thread(chosen.pk)
    session.say(f"Continued: {one_line(chosen.title or chosen.pk, 80)}")


def _cost(session: InteractiveSession, rest: str) -> None:
    tokens, cost, known = usage_of(session)
    price = f"${cost:.4f}" if known else f"at least ${cost:.4f}; some prices are unknown"
    session.say(f"This session: {tokens:,} tokens, {price}")


def usage_of(session: InteractiveSession) -> tuple[int, Decimal, bool]:
    """Return (tokens, dollars, whether all prices are known) of the session, with its subagents."""
    if session.thread is None:
        return 0, Decimal(0), True
    # A condition on both tables at once would scan all runs.
    family = Thread.every.filter(Q(pk=session.thread) | Q(root=session.thread)).values("pk")
    runs = counted_runs_for(session.owner).filter(thread__in=family)
    clocks = [row.clock for row in runs.select_related("clock")]
    return (
        sum(clock.total_tokens for clock in clocks),
        Decimal(sum(clock.cost_microusd for clock in clocks)) / MICRO,
        all(clock.cost_known for clock in clocks),
    )


def status(session: InteractiveSession) -> str:
    """Return one line: the model, the session's tokens, cost and context, and pending requests."""
    provider, model = model_of(session)
    tokens, cost, known = usage_of(session)
    parts = [one_line(f"{provider}: {model}", 60), f"{tokens:,} tokens"]
    parts.append(f"${cost:.4f}" if known else f"over ${cost:.4f}")
    if context := context_of(session, model):
        parts.append(context)
    if waiting := pending_for(session.owner).count():
        parts.append(f"{waiting} pending {'request' if waiting == 1 else 'requests'}: /approvals")
    return " · ".join(parts)


def context_of(session: InteractiveSession, model: str) -> str:
    """Return how much of the model's window the last call of the session used."""
    if session.thread is None:
        return ""
    last = Message.objects.filter(
        run__thread=session.thread, run__in=runs_for(session.owner), role=MessageRole.ASSISTANT
    ).last()
    if last is None:
        return ""
    used = last.input_tokens + last.cache_read_tokens + last.cache_write_tokens + last.output_tokens
    size = known_limits(model).context_window or ContextSettings.now().CONTEXT_WINDOW
    return f"context {min(100, round(100 * used / size))}% of {size:,}"


def _tools(session: InteractiveSession, rest: str) -> None:
    row = Agent.objects.filter(slug=session.agent).first()
    if row is None:
        raise CliError("The agent of the command line has its tools after the first task.")
    for tool in toolset_for(build_spec(row)).tools.values():
        session.say(f"{tool.name}  {one_line(tool.description, 90)}")


def _output(session: InteractiveSession, rest: str) -> None:
    display = session.driver.display
    if not isinstance(display, screen.SessionDisplay):
        raise CliError("/output needs a terminal with colors. Use `vel runs show RUN`.")
    if rest and not (rest.isascii() and rest.isdecimal()):
        raise CliError("Expected the number of an output, such as /output 3.")
    found = display.output(int(rest[:9]) if rest else None)
    if found is None:
        raise CliError("There is no such output here. `vel runs show RUN` shows a run.")
    session.say(f"Output {found.number}: {one_line(found.tool, 60)}", "bold cyan")
    lines = found.text.split("\n")
    session.say("\n".join(lines[:MOST_LINES]))
    if (more := len(lines) - MOST_LINES) > 0:
        session.say(f"… {more} more lines", "dim")


def _undo(session: InteractiveSession, rest: str) -> None:
    thread = session.stored_thread()
    last = last_run(session, thread.pk)
    step = WorkspaceSnapshot.objects.filter(thread=thread, run=last).order_by("pk").first()
    if step is None or not step.base:
        raise CliError("The last task changed no files that Vel can restore.")
    question = "Restore the files as they were before the last task, also without your changes?"
    if not confirm(question, Console(stderr=True, markup=False, highlight=False, emoji=False)):
        session.say("Nothing changed.")
        return
    done = restore_workspace(thread, step.base, by=session.owner)
    session.say("Restored the files. The conversation stays.")
    if done.failed:
        session.say(f"{len(done.failed)} files could not be restored.", "red")


def _paste(session: InteractiveSession, rest: str) -> None:
    if session.prompt is None:
        raise CliError(f"/paste needs a terminal that can edit lines. {clipboard.UPLOAD}")
    session.prompt.start = f"{session.prompt.picture()} "


def _attach(session: InteractiveSession, rest: str) -> None:
    if session.prompt is None or session.ran is None:
        raise CliError("There is no command yet. Run one: !COMMAND")
    session.prompt.start = session.prompt.pastes.insert_text(session.ran.as_text())


def run_own(session: InteractiveSession, command: str) -> int:
    """Run a command of the person's shell, where the agent works or in the current directory."""
    if "\n" in command:
        raise CliError(
            "Expected one line after the `!`. A task that starts with `!` needs a space."
        )
    if not command.strip():
        raise CliError("Expected a command after the `!`, such as !git status")
    directory = session.own_directory
    session.say(f"In {directory or Path.cwd()}, outside the sandbox")
    if directory is None:
        session.say("The agent works in another directory, so it does not see changes there.")
    session.ran = ran = shell.run(command, directory or Path.cwd(), _write)
    if ran.code:
        session.say(f"Exit code {ran.code}", "yellow")
    if ran.output:
        session.say("/attach adds the output to your next task.")
    return OK


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def last_run(session: InteractiveSession, thread: str) -> Run:
    """Return the newest run of the thread. Raises `CliError` if it has none."""
    runs = runs_for(session.owner).filter(thread=thread, parent=None).exclude(NEVER_STARTED)
    row = runs.order_by("-number").first()
    if row is None:
        raise CliError("This session has no task yet.")
    return row


OWN = (
    SlashCommand("/help", "", "Show these commands.", _of(_help)),
    SlashCommand("/clear", "", "Start a new session.", _of(_clear)),
    SlashCommand("/exit", "", "End the session.", _of(_exit)),
    SlashCommand("/quit", "", "End the session.", _of(_exit)),
    SlashCommand("/model", "[NAME]", "Show the model, or use another one.", _of(_model)),
    SlashCommand("/agent", "[SLUG]", "List the agents, or use another one.", _of(_agent)),
    SlashCommand("/resume", "[NUMBER]", "List sessions, or continue one.", _of(_resume)),
    SlashCommand("/cost", "", "Show tokens and cost of the session.", _of(_cost)),
    SlashCommand("/tools", "", "List the tools of the agent.", _of(_tools)),
    SlashCommand("/output", "[NUMBER]", "Show the whole output of a tool call.", _of(_output)),
    SlashCommand("/paste", "", "Attach the picture of the clipboard, as Ctrl-V does.", _of(_paste)),
    SlashCommand("/attach", "", "Add the output of the last !COMMAND to the line.", _of(_attach)),
    SlashCommand("/undo", "", "Restore the files from before the last task.", _of(_undo)),
)
