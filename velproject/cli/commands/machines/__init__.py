"""Commands that start Vel, and commands for the machines that it runs on."""

from velproject.cli.commands.machines.doctor import doctor
from velproject.cli.commands.machines.hosts import hosts
from velproject.cli.commands.machines.migrate import migrate
from velproject.cli.commands.machines.up import up
from velproject.cli.commands.machines.worker import worker

COMMANDS = (doctor, hosts, migrate, up, worker)
