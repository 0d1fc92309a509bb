"""`vel service`: Vel as a service of systemd."""

from __future__ import annotations

import shlex
import subprocess

import click

from agents.doors.cli.errors import FAILED, OK
from agents.features.operations.service.install import (
    CREATE_ACCOUNT,
    checked_listen,
    install,
    installed_listen,
    own_paths,
    refuse_other_role,
    refuse_unreachable,
    refuse_without_root,
    refuse_without_systemd,
    roles_here,
    run_program,
    uninstall,
)
from agents.features.operations.service.units import (
    ACCOUNT,
    ENVIRONMENT_FILE,
    LISTEN,
    STATE,
    Plan,
    Role,
    environment_of,
    files_of,
    to_enable,
)

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would be done, and change nothing."
)


@click.group(short_help="Run Vel as a service of systemd.")
def service() -> None:
    """Install, show or remove the service of systemd."""


@service.command("install", short_help="Write, enable and start the units.")
@click.option("--workers-only", is_flag=True, help="Run only workers, for a further machine.")
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Address of the web server. Default: that of the installed service, or 127.0.0.1:8000.",
)
@dry_run_option
def install_command(workers_only: bool, listen: str | None, dry_run: bool) -> int:
    """Write, enable and start the units.

    You can repeat it, for example after an upgrade: the settings, the address and the data stay.
    """
    paths = own_paths()
    role = Role.WORKERS if workers_only else Role.ALL
    plan = Plan(paths[0], role, checked_listen(listen or installed_listen() or LISTEN))
    refuse_other_role(role)
    if dry_run:
        _preview(plan)
        return OK
    refuse_without_systemd()
    refuse_without_root()
    refuse_unreachable(paths)
    for line in install(plan, run_program):
        print(line)
    print(f"Settings: {ENVIRONMENT_FILE}. Log: journalctl --namespace=vel")
    return OK


@service.command("status", short_help="Show whether the service works.")
def status_command() -> int:
    """Show the state of the units. Exits with 1 if the service is not installed or not active."""
    refuse_without_systemd()
    roles = roles_here()
    if not roles:
        print("The service is not installed: vel service install")
        return FAILED
    command = ["systemctl", "status", "--no-pager", "--lines=0"]
    command += [name for role in roles for name in to_enable(role)]
    return OK if subprocess.run(command, check=False).returncode == 0 else FAILED


@service.command("uninstall", short_help="Stop and remove the units; the data stays.")
@dry_run_option
def uninstall_command(dry_run: bool) -> int:
    """Stop and remove the units. The data, the settings and the account stay."""
    stays = f"The data stays in {STATE}, the settings in {ENVIRONMENT_FILE}, the account {ACCOUNT}."
    if dry_run:
        for role in roles_here():
            print(f"systemctl disable --now {' '.join(to_enable(role))}, and remove these units")
        print(stays)
        return OK
    refuse_without_systemd()
    refuse_without_root()
    for line in uninstall(run_program) or ["The service is not installed."]:
        print(line)
    print(stays)
    return OK


def _preview(plan: Plan) -> None:
    print(f"# Unless the account exists:\n{shlex.join(CREATE_ACCOUNT)}\n")
    print(f"# Unless it exists: {ENVIRONMENT_FILE}, mode 0600, owner root")
    print(environment_of(plan.role))
    for path, text in files_of(plan).items():
        print(f"# {path}, mode 0644\n{text}")
    print("systemctl daemon-reload")
    print(f"systemctl enable --now {' '.join(to_enable(plan.role))}")
