"""The commands of `vel`: a file or a folder for each subject.

A file contains the options and the code of its commands, and lists them as `COMMANDS`. `TABLE` has
their names and their help, because `vel --help` imports none of the files. The commands of features
are in `velproject.cli.lazy_group`.
"""

from velproject.cli.lazy_group import Table

_HERE = "velproject.cli.commands."

TABLE: Table = {
    _HERE + "accounts": {
        "secrets": "Encrypt stored passwords with a new key.",
        "token": "Create, list and revoke API tokens.",
        "user": "Create accounts for the pages.",
    },
    _HERE + "agents": {
        "agents": "List, export, import, archive and erase agents, import AGENTS.md as a prompt."
    },
    _HERE + "demo": {"demo": "Run the demo: a real analysis, also without a key."},
    _HERE + "features": {"features": "List features, and remove one with its tables."},
    _HERE + "machines": {
        "doctor": "Check this machine and say how to mend it.",
        "hosts": "List the hosts, drain one, declare one dead.",
        "migrate": "Bring the database's tables up to date.",
        "up": "Start the web pages, the API and the workers.",
        "worker": "Start workers only, for another supervisor to watch.",
    },
    _HERE + "prune": {"prune": "Remove old threads and other old rows, or erase some."},
    _HERE + "runs": {
        "run": "Give an agent a task (the same as `vel TASK`).",
        "runs": "List, show, cancel and resume runs.",
        "usage": "Show tokens and cost by day.",
    },
    _HERE + "schema": {"schema": "Print the OpenAPI document."},
    _HERE + "toolbox": {"toolbox": "Build Python environments that agents can use."},
    _HERE + "workspaces": {"workspaces": "List, archive and remove the files of threads."},
}
