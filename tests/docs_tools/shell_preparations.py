"""What the console and sh blocks of a page need before they run.

`BEFORE` has commands that run first. `REPLACED` has texts of a page for which the reader puts their
own values. A variable of `BEFORE` can be such a value.
"""

from __future__ import annotations

_ZIP = """
python -c "import zipfile
zipfile.ZipFile('weekly-report.zip', 'w').writestr('monthly-report/SKILL.md',
    '---\\nname: monthly-report\\ndescription: Writes the report of a month.\\n---\\nWrite it.')"
"""
PASSWORD = "a-long-enough-password"
_ME = f'vel user create "$(id -un)" --admin --password-stdin <<< {PASSWORD} > /dev/null\n'
_AGENT = f"{_ME}vel agents new data-analyst --name Writer > /dev/null\nAGENT=writer\n"
_NEW_USER = {"create ada --admin": f"create ada --admin --password-stdin <<< {PASSWORD}"}
_ASK = """
echo '{"turns": [{"text": "I look.", "tool_calls": [
  {"name": "execute", "input": {"command": "date"}}]}, {"text": "Done."}]}' > ask.json
ask() {
    vel --approve execute --provider scripted --model "file:$PWD/ask.json" Look > /dev/null 2>&1
    vel approvals list --json | tail -n 1 |
        python -c 'import json, sys; one = json.load(sys.stdin); print(one["id"], one["run"])'
}
read -r REQUEST RUN <<< "$(ask)"
"""
_MORE_REQUESTS = """
for name in REQUEST2 REQUEST3 REQUEST4 REQUEST5; do read -r $name _ <<< "$(ask)"; done
export EDITOR=true
"""
_NOTES = "echo Notes. > notes.md\n"
_SERVER = f"""{_AGENT}
python -P -m velproject.cli up --port 0 > server.log 2>&1 &
SERVER=$!
trap 'kill $SERVER; wait $SERVER' EXIT
until grep -q "press Ctrl-C to stop" server.log; do
    kill -0 $SERVER || {{ cat server.log; exit; }}
done
HOST=$(grep -o "http://127.0.0.1:[0-9]*" server.log | head -n 1)
SCOPES="--scope read --scope run --scope approve --scope manage --scope admin"
TOKEN=$(vel token create "$(id -un)" $SCOPES |
    grep -o "vel_[A-Za-z0-9_-]*" | tail -n 1)
export VEL=$HOST/api/v1 AUTH="Authorization: Bearer $TOKEN"
of() {{ python -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }}
"""
_WRITE = """
echo '{"turns": [
  {"tool_calls": [{"name": "write_file", "input": {
    "path": "/sandbox/outputs/report.md", "content": "Rain"}}]},
  {"tool_calls": [{"name": "write_file", "input": {
    "path": "/sandbox/outputs/more.md", "content": "Sun"}}]},
  {"text": "Done."}]}' > write.json
vel --json --provider scripted --model "file:$PWD/write.json" Write > events.json 2> /dev/null
"""
_RUN = f"""{_WRITE}
RUN=$(head -n 1 events.json | of run_id)
THREAD=$(curl -H "$AUTH" $VEL/runs/$RUN | of thread)
echo a > data.csv
"""

BEFORE: dict[str, str] = {
    "CONTRIBUTING.md": 'cp "$REPOSITORY/README.md" .\n',
    "docs/concepts/memory.md": _AGENT + _NOTES,
    "docs/contributing/features.md": "rm -r vel_glossary\n"
    'cp -r "$REPOSITORY/tests/agents/features/glossary" vel_glossary\n'
    'export PYTHONPATH="$PWD"\n',
    "docs/getting-started/python.md": 'answer() { read -r line; echo "$line" | "$@"; }\n',
    "docs/getting-started/terminal.md": _ASK,
    "docs/guides/agent-templates.md": _ME,
    "docs/guides/command-line.md": _ASK
    + _MORE_REQUESTS
    + "git init -q . && echo a > a && git add a && echo b > a && mkdir project\n",
    "docs/guides/databases.md": 'python -c \'import sqlite3; sqlite3.connect("shop.db")'
    '.execute("create table orders (id integer)")\'\n',
    "docs/guides/memory.md": _AGENT
    + _NOTES
    + "mkdir project\necho 'Use tabs.' > project/AGENTS.md\ncp notes.md more.md\n"
    "for number in 1 2 3; do echo $number |\n"
    "    vel memory write writer knowledge/preferences.md > /dev/null; done\n"
    "vel memory write writer knowledge/notes.md --from notes.md > /dev/null\n",
    "docs/guides/notifications.md": _AGENT,
    "docs/guides/skills-builtin.md": "echo a > sales.csv\n",
    "docs/guides/skills-directories.md": "mkdir skills more\n",
    "docs/guides/structured-output.md": """
echo '{"type": "object"}' > total.json
echo '{"turns": [{"text": "{\\"total\\": 1}"}]}' > script.json
export VEL_MODEL="file:$PWD/script.json"
""",
    "docs/guides/uploads.md": _SERVER + _RUN + "echo a > data.csv\n"
    'PYTHONPATH="$REPOSITORY" python -c \'from tests.support.documents import docx; '
    'open("report.docx", "wb").write(docx("Rain"))\'\n',
    "docs/guides/schedules-and-webhooks.md": _SERVER
    + """curl -H "$AUTH" -H "Content-Type: application/json" $VEL/hooks -d '{
  "agent": "writer", "name": "Issues", "message": "{{ body.issue.title }}"}' > hook.json
HOOK=$(of hook < hook.json | grep -o "'id': '[^']*" | cut -c8-) SECRET=$(of secret < hook.json)
""",
    "docs/guides/streams.md": _SERVER + _RUN,
    "docs/operations/backup.md": "export VEL_BACKUP_PASSPHRASE='a passphrase that is long'\n",
    # The page is about a server that runs. The web server answers before the first worker reports.
    "docs/operations/troubleshooting.md": _SERVER
    + 'curl --retry 300 --retry-delay 1 "$HOST/readyz" > /dev/null 2>&1\n',
    "docs/reference/rest-api.md": _SERVER
    + _ASK
    + _RUN
    + _ZIP
    + f"vel user create alice --password-stdin <<< {PASSWORD}\n"
    + 'ID=$REQUEST DIGEST=$(curl -H "$AUTH" $VEL/approvals/$REQUEST | of digest)\n',
    "docs/reference/rest-objects.md": _SERVER,
    "docs/guides/workspaces.md": _WRITE + "mkdir archive\n"
    "THREAD=$(vel workspaces list --json | head -n 1 |\n"
    "    python -c 'import json, sys; print(json.load(sys.stdin)[\"thread\"])')\n",
}

REPLACED: dict[str, dict[str, str]] = {
    "README.md": _NEW_USER,
    "docs/concepts/approvals.md": {"vel demo": "vel demo --no-toolbox"},
    "docs/concepts/memory.md": {"AGENT": "$AGENT"},
    "docs/contributing/features.md": {"pip install": ": pip install"},
    "docs/getting-started/browser.md": {"git clone ADDRESS vel": ": clone", **_NEW_USER},
    "docs/getting-started/demo.md": {"vel demo": "vel demo --no-toolbox"},
    "docs/getting-started/install.md": {"git clone ADDRESS vel": ": clone", "cd vel": ": cd"},
    "docs/getting-started/python.md": {"env/bin/python refund": "answer env/bin/python refund"},
    "docs/getting-started/terminal.md": {
        "git clone ADDRESS vel": ": clone",
        "vel --workspace . --approve": "READER_ANSWER=y vel --workspace . --approve",
        "REQUEST": "$REQUEST",
        "resume RUN": "resume $RUN",
    },
    "docs/guides/command-line.md": {
        "approvals watch": "approvals list",  # `watch` ends with Ctrl-C
        "approve REQUEST REQUEST2": "approve $REQUEST $REQUEST2",
        "reject REQUEST": "reject $REQUEST3",
        "edit REQUEST": "edit $REQUEST4",
        "decide REQUEST": "decide $REQUEST5",
        "show REQUEST": "show $REQUEST",
        "resume RUN": "resume $RUN",
        **_NEW_USER,
        "create bob --approver": f"create bob --approver --password-stdin <<< {PASSWORD}",
        "revoke vel_AbC123": "revoke $(vel token list --json | head -n 1 | "
        "python -c 'import json, sys; print(json.load(sys.stdin)[\"prefix\"])')",
    },
    "docs/guides/guardrails.md": {"/srv": "$PWD"},
    "docs/guides/memory.md": {"AGENT": "$AGENT", "[": "", "]": ""},
    "docs/guides/middleware.md": {"/srv": "$PWD"},
    "docs/guides/notifications.md": {
        "coder": "writer",
        "TARGET": "$(vel notifications list --json | head -n 1 | "
        "python -c 'import json, sys; print(json.load(sys.stdin)[\"id\"])')",
    },
    "docs/guides/schedules-and-webhooks.md": {"https://vel.example.org": "$HOST"},
    "docs/guides/skills-directories.md": {"/srv/skills,/srv/more": "$PWD/skills,$PWD/more"},
    "docs/guides/uploads.md": {
        'curl -H "$AUTH" -X DELETE': 'UPLOAD=$(curl -H "$AUTH" "$VEL/threads/$THREAD/uploads" |\n'
        '    python -c \'import json, sys; print(json.load(sys.stdin)["results"][0]["id"])\')\n'
        'curl -H "$AUTH" -X DELETE',
    },
    "docs/operations/backup.md": {
        "vel restore latest": 'VEL_SECRET_KEY=$(cat "$VEL_DATA_DIR/secret_key") '
        "VEL_DATA_DIR=$(mktemp -d) vel restore latest",
        "/mnt/backups/vel": "$PWD/backups",
    },
    "docs/operations/move-database.md": {
        "postgresql://vel:…@db.internal/vel": "sqlite:///$PWD/moved.sqlite3",
        "/var/lib/vel": "$PWD",
    },
    "docs/operations/troubleshooting.md": {"http://127.0.0.1:8000": "$HOST"},
    "docs/reference/rest-api.md": {
        "http://127.0.0.1:8000/api/v1": "$HOST/api/v1",
        "Bearer vel_…": "Bearer $TOKEN",
        '\'{"run": "…", "turn": 2, "to": "before"}\'': '"{\\"run\\": \\"$RUN\\", \\"turn\\": 2, '
        '\\"to\\": \\"before\\"}"',
        'memory/knowledge/preferences.md"\ncurl -H "$AUTH" -H': 'memory/knowledge/preferences.md"\n'
        "echo More. | vel memory write writer knowledge/preferences.md\n"
        'curl -H "$AUTH" -H',
        '\'{"decision": "approve", "digest": "…"}\'': '"{\\"decision\\": \\"approve\\", '
        '\\"digest\\": \\"$DIGEST\\"}"',
    },
    "docs/reference/rest-objects.md": {
        'curl -H "$AUTH" $VEL/budgets/$ID': 'ID=$(curl -H "$AUTH" $VEL/budgets |\n'
        '    python -c \'import json, sys; print(json.load(sys.stdin)["results"][0]["id"])\')\n'
        'ETAG=$(curl -i -H "$AUTH" $VEL/budgets/$ID | tr -d "\\r" | sed -n "s/^[Ee][Tt]ag: //p")\n'
        'curl -H "$AUTH" $VEL/budgets/$ID',
    },
    "docs/guides/workspaces.md": {"THREAD": "$THREAD", "DIR": "archive"},
}
EXIT_CODES: dict[tuple[str, str], int] = {
    ("docs/guides/notifications.md", "vel notifications test"): 1,  # hooks.example.org is no host
}
"""Commands that end with another exit code than 0 on a test's machine, by page and start."""
