"""The commands of `vel`: a file or a folder for each subject.

A file contains the options and the code of its commands, and lists them as `COMMANDS`. `TABLE` has
their names and their help, so that `vel --help` need not import the files.
`velproject.cli.lazy_group` finds the commands of features.
"""

from velproject.cli.lazy_group import Table

_HERE = "velproject.cli.commands."

TABLE: Table = {
    _HERE + "accounts": {
        "secrets": "Encrypt stored passwords with a new key.",
        "token": "Create, list and revoke API tokens.",
        "user": "Create accounts for the web pages and the API.",
    },
    _HERE + "agents": {"agents": "Create, list, export, import, archive and erase agents."},
    _HERE + "completion": {"completion": "Print a script that completes `vel` in a shell."},
    _HERE + "demo": {"demo": "Run the demo: a real analysis. Needs no key."},
    _HERE + "features": {"features": "List features, or remove the tables of one."},
    _HERE + "machines": {
        "doctor": "Check this machine and show how to fix problems.",
        "hosts": "List hosts, drain a host, or declare it dead.",
        "migrate": "Update the database tables.",
        "up": "Start the web pages, the API and the workers.",
        "worker": "Start only workers, under your own supervisor.",
    },
    _HERE + "prune": {"prune": "Remove old data, or erase threads."},
    _HERE + "runs": {
        "run": "Give an agent a task (the same as `vel TASK`).",
        "runs": "List, show, cancel and resume runs.",
        "usage": "Show tokens and cost per day.",
    },
    _HERE + "schema": {"schema": "Print the OpenAPI document."},
    _HERE + "toolbox": {"toolbox": "Build Python environments that agents can use."},
    _HERE + "workspaces": {"workspaces": "List, archive and remove the files of threads."},
}
