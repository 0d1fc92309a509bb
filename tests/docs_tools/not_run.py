"""The blocks that no test can run, by page and the start of the block, each with the reason.

An empty page means all pages.
"""

from __future__ import annotations

_KEY = "needs the key of a provider"
_INSTALLS = "installs packages from an index"

NOT_RUN: dict[tuple[str, str], str] = {
    ("", "$ sudo apt-get update"): "installs system packages",
    ("", "$ git clone ADDRESS vel\n$ python3 -m venv"): _INSTALLS,
    ("", "$ env/bin/pip install"): _INSTALLS,
    ("", "$ make"): "installs Vel, or runs the tests; CI runs these targets",
    ("", "export ANTHROPIC_API_KEY=…"): _KEY,
    ("", "ANTHROPIC_API_KEY=… vel demo"): _KEY,
    ("", "$ .venv/bin/python -m benchmarks"): "takes minutes, and the machine must be idle",
    ("docs/contributing/release.md", "$ git tag"): "publishes a release",
    ("docs/contributing/release.md", "$ git checkout"): "needs a published release",
    ("docs/getting-started/install.md", "$ .venv/bin/pip install --editable"): _INSTALLS,
    (
        "docs/getting-started/install.md",
        '$ git clone ADDRESS vel      # see "The address of the repository" above\n$ python3',
    ): _INSTALLS,
    ("docs/guides/api-client.md", "vel schema > openapi.json"): _INSTALLS,
    ("docs/guides/embedding.md", "$ daphne"): "tests/foreign_project runs them",
    ("docs/guides/interop.md", "$ pip install"): _INSTALLS,
    ("docs/guides/mcp.md", "vel toolbox create"): _INSTALLS,
    ("docs/guides/mcp.md", "vel token create"): "needs Claude Code",
    ("docs/guides/mcp.md", "import httpx2"): "tests/agents/features/mcp_server uses this client",
    ("docs/guides/own-directory.md", '$ vel --workspace . "Add a'): "needs a model that does it",
    ("docs/guides/providers.md", "OPENAI_BASE_URL="): "needs a server with a model",
    ("docs/guides/providers.md", "vel providers list"): _KEY,
    ("docs/guides/skills-builtin.md", "$ vel toolbox create"): _INSTALLS,
    ("docs/guides/toolboxes.md", "$ vel toolbox create"): _INSTALLS,
    ("docs/guides/toolboxes.md", "$ vel --toolbox"): "needs a toolbox from an index",
    ("docs/guides/uploads.md", "vel toolbox create"): _INSTALLS,
    ("docs/operations/containers.md", "$ docker"): "needs Docker and a registry of images",
    ("docs/operations/containers.md", "$ cd deploy"): "writes secrets into the clone",
    ("docs/operations/containers.md", "$ kubectl"): "needs a cluster",
    ("docs/operations/containers.md", "$ helm"): "needs a cluster",
    ("docs/operations/backup.md", "export AWS_ACCESS_KEY_ID=…"): "needs object storage",
    ("docs/operations/deploy.md", "$ curl -sI http://vel.example.org/"): "needs a proxy with HTTPS",
    ("docs/operations/deploy.md", "$ curl -N"): "needs a proxy with HTTPS",
    ("docs/operations/scaling.md", "export VEL_HOST"): "needs two hosts",
    ("docs/operations/backup.md", "$ sudo install -d"): "needs systemd and root",
    ("docs/operations/backup.md", "$ sudo systemd-run"): "needs systemd and root",
    ("docs/operations/service.md", "$ sudo apt-get"): "needs root",
    ("docs/operations/service.md", "$ sudo /opt/vel"): "needs systemd and root",
    ("docs/operations/service.md", "$ sudo systemd-run"): "needs systemd and root",
    ("docs/operations/security.md", "pytest tests/attacks"): "is itself a run of the tests",
    ("docs/operations/upgrade.md", "$ /opt/vel-new/bin/vel"): "shows an upgrade with migrations",
    ("docs/operations/upgrade.md", "$ sudo systemctl stop"): "needs systemd and root",
}
