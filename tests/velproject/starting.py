"""Start runs for workers, in a forked process like a command: see `tests.velproject.forked`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from tests.support.forking import Forked
from tests.velproject import forked
from tests.velproject.command import DEADLINE, Vel


@contextmanager
def starting_runs(vel: Vel) -> Iterator[Callable[[str], str]]:
    """Yield a function that starts a run of a scripted model for the workers and returns its ID."""
    (given, give), (told, tell) = os.pipe(), os.pipe()
    environment = {**vel.env(), forked.PROGRAM: __name__}
    with Forked(
        forked.__name__,
        environment=environment,
        cwd=vel.data,
        descriptors=[given, tell, 2],
    ) as process:
        os.close(given)
        os.close(tell)
        with open(give, "w", encoding="utf-8") as models, open(told, encoding="utf-8") as ids:

            def start(model: str) -> str:
                print(model, file=models, flush=True)
                run_id = ids.readline().strip()
                assert run_id, "it failed: see its standard error"
                return run_id

            yield start
        assert process.wait(DEADLINE) == 0


def main() -> None:
    """Start runs. This is the forked process."""
    save_agent = import_module("agents.services.agent_definitions.actions").save_agent
    new_agent, new_id = import_module("agents.models").Agent, import_module("agents.ids").new_id
    runs = import_module("agents.services.runs.start")
    owner = import_module("agents.doors.cli.local_user").local_user()
    for line in sys.stdin:
        slug, model = new_id(), line.strip()
        save_agent(new_agent(name="Test", slug=slug, owner=owner, provider="scripted", model=model))
        run = runs.create_run(runs.RunRequest(agent=slug, message="go"), owner=owner).run
        print(run.id, flush=True)
