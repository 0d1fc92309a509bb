"""Set up a team over the REST API, with the generated client.

Generate and install the client (docs/guides/api-client.md); type checkers need it, too. Start a
server with `vel up`, and create a token for a superuser:

    vel token create olga --scope read --scope run --scope approve --scope manage --scope admin
    python examples/rest_team.py http://127.0.0.1:8000 vel_… --database postgresql://…

It defines a database, an MCP server and an agent with a policy, a skill, a budget, a schedule and a
webhook. It runs the agent, approves a call and reads the result. Then it archives the agent and
removes the rest.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, TypeVar

from vel_client import AuthenticatedClient
from vel_client.api.agents import (
    archive_agent,
    change_agent,
    create_agent,
    get_agent,
    list_agent_versions,
)
from vel_client.api.approvals import decide_approval, list_approvals
from vel_client.api.budgets import create_budget, delete_budget, get_budget
from vel_client.api.databases import create_database, delete_database
from vel_client.api.hooks import create_hook, delete_hook
from vel_client.api.mcp_servers import create_mcp_server, delete_mcp_server
from vel_client.api.runs import create_run, get_run, list_tool_calls
from vel_client.api.schedules import create_schedule, delete_schedule
from vel_client.api.skills import create_agent_skill, list_agent_skills
from vel_client.models import (
    DecisionBody,
    NewAgentBody,
    NewBudgetBody,
    NewDatabaseBody,
    NewHookBody,
    NewMcpServerBody,
    NewScheduleBody,
    OwnSkillBody,
    PatchedAgentBody,
    Problem,
    RunBody,
)

T = TypeVar("T")
ENDED = ("completed", "failed", "cancelled")


def done(answer: T | Problem | None) -> T:
    """Return the answer. After a refusal, end the program with its reason."""
    if isinstance(answer, Problem) or answer is None:
        raise SystemExit(f"Refused: {answer.code}: {answer.detail}" if answer else "No answer")
    return answer


def removed(answer: Any) -> None:
    """Check a deletion, which has no body."""
    if answer.status_code != 204:
        raise SystemExit(f"Not removed: {answer.content.decode()}")


def main() -> None:
    options = _options()
    client = AuthenticatedClient(
        base_url=f"{options.url}/api/v1",
        token=options.token,
    )
    # The resources. Their secrets can be set, but not read.
    database = done(
        create_database.sync(
            client=client,
            body=NewDatabaseBody.from_dict({"name": "team_data", "url": options.database}),
        )
    )
    server = done(
        create_mcp_server.sync(
            client=client,
            body=NewMcpServerBody.from_dict(
                {"slug": "team-time", "command": "mcp-server-time", "secrets": {"ZONE": "UTC"}}
            ),
        )
    )
    # The agent: its policy, its database and its server are fields of its definition.
    agent = done(
        create_agent.sync(
            client=client,
            body=NewAgentBody.from_dict(
                {
                    "name": "Team analyst",
                    "system_prompt": "Answer questions about the data of the team.",
                    "provider": options.provider,
                    "model": options.model,
                    "databases": ["team_data"],
                    "mcp_servers": ["team-time"],
                    "approval_rules": [
                        {"tool": "execute", "action": "deny", "reason": "No commands here."},
                        {"tool": "write_todos", "action": "ask"},
                    ],
                }
            ),
        )
    )
    skill = {
        "name": "team-report",
        "description": "How the team reports.",
        "instructions": "Short.",
    }
    done(create_agent_skill.sync(agent.id, client=client, body=OwnSkillBody.from_dict(skill)))
    skills = done(list_agent_skills.sync(agent.id, client=client))
    print("agent", agent.slug, "version", agent.version, "skills", "team-report" in str(skills))
    budget = done(
        create_budget.sync(
            client=client,
            body=NewBudgetBody.from_dict(
                {"agent": agent.slug, "period": "day", "max_tokens": 5_000_000}
            ),
        )
    )
    trigger = {"name": "Team report", "agent": agent.slug, "message": "Report."}
    schedule = done(
        create_schedule.sync(
            client=client, body=NewScheduleBody.from_dict({**trigger, "cron": "0 8 * * 1"})
        )
    )
    hook = done(create_hook.sync(client=client, body=NewHookBody.from_dict(trigger))).hook
    print("triggers", schedule.name, hook.url)
    # A run that requires an approval.
    run = done(
        create_run.sync(
            client=client, body=RunBody(agent=agent.slug, message="Plan, then read the data.")
        )
    )
    while (run := done(get_run.sync(run.id, client=client))).status.value not in ENDED:
        for request in done(list_approvals.sync(client=client, run=run.id)).results:
            if request.status.value == "pending":
                decision = {"decision": "approve", "digest": request.digest}
                body = DecisionBody.from_dict(decision)
                done(decide_approval.sync(request.id, client=client, body=body))
                print("approved", request.tool)
        time.sleep(0.1)
    calls = done(list_tool_calls.sync(run.id, client=client)).results
    print("run", run.status.value, "calls", *(f"{each.tool}:{each.status.value}" for each in calls))
    print("output", run.output)
    print("used", done(get_budget.sync(budget.id, client=client)).used_tokens > 0)
    # Remove the resources, and archive the agent with its runs.
    freed = PatchedAgentBody.from_dict({"databases": [], "mcp_servers": []})
    done(change_agent.sync(agent.id, client=client, body=freed))
    removed(delete_schedule.sync_detailed(schedule.id, client=client))
    removed(delete_hook.sync_detailed(hook.id, client=client))
    removed(delete_budget.sync_detailed(budget.id, client=client))
    removed(delete_database.sync_detailed(database.id, client=client))
    removed(delete_mcp_server.sync_detailed(server.id, client=client))
    removed(archive_agent.sync_detailed(agent.id, client=client))
    versions = done(list_agent_versions.sync(agent.id, client=client)).results
    found = done(get_agent.sync(agent.id, client=client))
    print("archived", not found.is_active, "versions", len(versions))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--database", required=True, help="database URL for the server")
    parser.add_argument("--provider", default="", help="default: that of the settings")
    parser.add_argument("--model", default="", help="default: that of the provider")
    return parser.parse_args()


if __name__ == "__main__":
    main()
