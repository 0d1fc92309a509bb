"""Run an agent with guardrails in a copy of the project without that feature.

Run in the copy by `test_removal`. Print the status, error code, turn and error message of the run.
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


if __name__ == "__main__":
    # An editable installation would find the original, too.
    sys.path[:] = [path for path in sys.path if not Path(path, "manage.py").is_file()]
    sys.path.insert(0, os.getcwd())
    assert not any(map(find_spec, os.environ["REMOVED"].split()))
    import_module("django").setup()
    import_module("django.core.management").call_command("migrate", verbosity=0)
    guarded_agent()
    try:
        import_module("velproject.cli.main").main(["--agent", "guarded", "Say hello"])
    except SystemExit as end:
        assert end.code  # noqa: PT017  # no test: a script
    run = import_module("agents.models").Run.objects.get()
    print(run.status, run.error_code, run.clock.turn, run.error_message)
