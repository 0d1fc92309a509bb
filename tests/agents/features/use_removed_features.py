"""Start runs that need removed features in a copy of the project without them.

Run in the copy by `test_removal`. One run has a limit of costs: its error is printed. The other one
is a run of an agent with guardrails: print its status, error code, turn and error message.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

OPTIONS = {"guardrails": ["secrets"]}


def guarded_agent() -> None:
    """Make the agent as the feature has left it, and save it once more without the feature."""
    agents = import_module("agents.services.agent_definitions.actions")
    fields = {"slug": "guarded", "name": "Guarded", "provider": "scripted", "model": "demo"}
    new = import_module("agents.models").Agent(**fields, sandbox=False, everyone=True)
    agent = agents.save_agent(new)
    agent.definition = {**agent.definition, **OPTIONS}
    agent.save()
    version = agent.versions.get()
    version.spec = {**version.spec, **OPTIONS, "needs": {"guardrails": "guardrails"}}
    version.save()
    agent.system_prompt = "Changed"
    agents.save_agent(agent)
    assert agent.version == 2


def start_run(*flags: str) -> None:
    """Start a run in the terminal. It has to fail."""
    try:
        import_module("velproject.cli.main").main([*flags, "Say hello"])
    except SystemExit as end:
        assert end.code  # noqa: PT017  # no test: a script
    else:
        raise AssertionError(flags)


if __name__ == "__main__":
    # An editable installation would find the original, too.
    sys.path[:] = [path for path in sys.path if not Path(path, "manage.py").is_file()]
    sys.path.insert(0, os.getcwd())
    assert not any(map(find_spec, os.environ["REMOVED"].split()))
    import_module("django").setup()
    start_run("--provider", "scripted", "--model", "demo", "--no-sandbox", "--max-cost", "1")
    guarded_agent()
    start_run("--agent", "guarded")
    run = import_module("agents.models").Run.objects.latest("created_at")
    print(run.status, run.error_code, run.clock.turn, run.error_message)
