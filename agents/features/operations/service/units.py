"""The texts of the units of systemd, with hardening that keeps the sandbox working.

bubblewrap needs user namespaces, mounts in them, a new /proc and a host name. Therefore, the units
leave out `RestrictNamespaces`, `ProtectKernelTunables`, `ProtectKernelLogs`, `ProcSubset` and
`ProtectHostname`. `MemoryDenyWriteExecute` would break programs that compile code at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ACCOUNT = "vel"
STATE = "/var/lib/vel"
LISTEN = "127.0.0.1:8000"
SOCKET = "vel.socket"
ENVIRONMENT_FILE = "/etc/vel/vel.env"
MARK = "# Written by `vel service install`. Change it with `systemctl edit`.\n"
"""The first line of each unit. A file without it belongs to somebody else."""


class Role(StrEnum):
    """What a machine runs."""

    ALL = "all"
    WORKERS = "workers"


@dataclass(frozen=True, slots=True)
class Plan:
    """The answers of the operator. `python` is the interpreter with Vel."""

    python: str
    role: Role = Role.ALL
    listen: str = LISTEN


_HARDENING = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectKernelModules=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount seccomp sethostname
SystemCallErrorNumber=EPERM
KeyringMode=private
RemoveIPC=yes
UMask=0077
"""

_SERVICE = """\
{mark}[Unit]
Description={description}
Wants=network-online.target
After=network-online.target{after}
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
User={account}
Group={account}
ExecStart={python} -P -m velproject.cli {command}
Environment=VEL_DATA_DIR={state} HOME={state}
EnvironmentFile={environment}
WorkingDirectory={state}
StateDirectory=vel
StateDirectoryMode=0700
Restart=always
RestartSec=2
# Vel tells its own processes to stop. After the time, systemd kills the others.
KillMode=mixed
TimeoutStopSec=60
# Each command of an agent gets its own control group.
Delegate=yes
LimitNOFILE=65536
StandardOutput=journal
StandardError=journal
LogNamespace=vel
{hardening}
[Install]
WantedBy=multi-user.target
"""

_SOCKET = """\
{mark}[Unit]
Description=The socket of Vel, which keeps connections while Vel restarts

[Socket]
ListenStream={listen}
Backlog=1024

[Install]
WantedBy=sockets.target
"""

_JOURNAL = """\
{mark}[Journal]
SystemMaxUse=1G
MaxFileSec=1day
MaxRetentionSec=30day
"""

_ENVIRONMENT = """\
# The settings of Vel: NAME=value, one a line. Only root can read this file.
# Write a comment on its own line: behind a value, it becomes part of the value.
# After a change: systemctl restart {service}
#ANTHROPIC_API_KEY=
#DATABASE_URL=postgresql://vel:PASSWORD@db.example.org/vel
#VEL_ALLOWED_HOSTS=vel.example.org
#VEL_PUBLIC_URL=https://vel.example.org
#VEL_HTTPS=1
#VEL_TRUSTED_PROXIES=1
"""


def service_of(role: Role) -> str:
    """Return the name of the service that runs `role`."""
    return "vel.service" if role is Role.ALL else "vel-worker.service"


def to_enable(role: Role) -> tuple[str, ...]:
    """Return the names of the units that start with the machine."""
    return ("vel.socket", "vel.service") if role is Role.ALL else ("vel-worker.service",)


def files_of(plan: Plan) -> dict[str, str]:
    """Return the files of `plan`, as texts by absolute path, without the environment file."""
    listens = plan.role is Role.ALL
    host, _, port = plan.listen.rpartition(":")
    service = _SERVICE.format(
        mark=MARK,
        description="Vel: web and workers" if listens else "Vel: workers",
        after=" vel.socket\nRequires=vel.socket" if listens else "",
        account=ACCOUNT,
        python=plan.python,
        command=f"up --host {host.strip('[]')} --port {port}" if listens else "worker",
        state=STATE,
        environment=ENVIRONMENT_FILE,
        hardening=_HARDENING,
    )
    found = {f"/etc/systemd/system/{service_of(plan.role)}": service}
    if listens:
        found["/etc/systemd/system/vel.socket"] = _SOCKET.format(mark=MARK, listen=plan.listen)
    found["/etc/systemd/journald@vel.conf"] = _JOURNAL.format(mark=MARK)
    return found


def environment_of(role: Role) -> str:
    """Return the first text of the environment file."""
    return _ENVIRONMENT.format(service=service_of(role))
