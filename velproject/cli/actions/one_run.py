"""The actions of `vel runs show`, `cancel` and `resume`."""

from __future__ import annotations

import json

from django.contrib.auth.models import User

from agents.events.read import read_events
from agents.models import POOL, Message, MessageRole, Run
from agents.selectors.visible import runs_for
from agents.states import RunStatus
from velproject.cli.actions.display import Display
from velproject.cli.actions.drive import Driver
from velproject.cli.actions.find import by_id
from velproject.cli.actions.local_user import local_user
from velproject.cli.actions.orphans import cancel_wherever, take_over
from velproject.cli.actions.runs import status_words
from velproject.cli.boot import again
from velproject.cli.errors import CliError
from velproject.cli.terminal import visible

PAGE = 500


def show_run(*, run_id: str, as_json: bool, follow: bool) -> None:
    """The run's events, as they were shown while it ran."""
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if follow and not run.has_ended:
        Driver(owner, as_json=as_json).watch(run)
        return
    display = Display(live=False)
    if not as_json:
        _show_head(run, display)
    after = 0
    while events := read_events(run.id, after=after, limit=PAGE):
        for event in events:
            if as_json:
                print(json.dumps({"run_id": run.id, **event}))
            else:
                display.event(event)
        after = events[-1]["seq"]
    display.close()


def _show_head(run: Run, display: Display) -> None:
    spec = run.agent_version.spec
    display.note(f"run {run.id}  {status_words(run)}  {spec['slug']} ({spec['model']})")
    message = Message.objects.filter(run=run, role=MessageRole.USER, turn=0).first()
    if message is not None:
        for line in visible(message.text).splitlines():
            display.note(f"> {line}", "bold")


def cancel(*, run_id: str, reason: str) -> None:
    """End the run; where its process is gone, end it from here."""
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if run.has_ended:
        print(f"The run is {run.status} already.")
        return
    run = cancel_wherever(run, by=owner.username, reason=reason)
    print("Cancelled." if run.has_ended else "It will end within a second.")


def resume(*, run_id: str, as_json: bool, detach: bool) -> int:
    """Let the run go on, here or with the workers."""
    owner = local_user()
    run = by_id(runs_for(owner), run_id, "run")
    if run.has_ended and run.status != RunStatus.FAILED:
        raise CliError(f"The run is {run.status}: send a new message with --session instead.")
    if detach:
        if run.status == RunStatus.WAITING:
            raise CliError(
                f"The run waits for approval: decide that first ({again('approvals list')})."
            )
        take_over(run, POOL)
        print(f"Handed to the workers: {again(f'runs show {run.id} --follow')} watches it.")
        return 0
    return _drive_here(run, owner, as_json=as_json)


def _drive_here(run: Run, owner: User, *, as_json: bool) -> int:
    driver = Driver(owner, as_json=as_json)
    try:
        return driver.drive(run, after=run.clock.seq, adopt=True)
    finally:
        driver.close()
