"""`vel hosts`: the machines that work on one database."""

from __future__ import annotations

from pathlib import Path

import click

from velproject.cli.boot import perform
from velproject.cli.options import json_option, persist_option


@click.group(short_help="List the hosts, drain one, declare one dead.")
def hosts() -> None:
    """The machines that drive runs, where there are several (VEL_HOST)."""


@hosts.command("list")
@persist_option
@json_option
def list_hosts(persist: Path | None, as_json: bool) -> int:
    """Show each host with its state, its last sign of life and the threads it holds."""
    return perform("commands.machines.hosts:list_hosts", persist=persist, as_json=as_json)


@hosts.command("drain")
@click.argument("name")
@click.option("--wait/--no-wait", default=True, help="Stay until its threads have left [wait].")
@persist_option
def drain(name: str, wait: bool, persist: Path | None) -> int:
    """Let a host begin nothing more and give its threads, with their files, to the others.

    It must be running. What its runs are doing is ended at the next step and goes on elsewhere.
    """
    return perform("commands.machines.hosts:drain", persist=persist, name=name, wait=wait)


@hosts.command("undrain")
@click.argument("name")
@persist_option
def undrain(name: str, persist: Path | None) -> int:
    """Let a drained host take runs again."""
    return perform("commands.machines.hosts:undrain", persist=persist, name=name)


@hosts.command("declare-dead")
@click.argument("name")
@persist_option
def declare_dead(name: str, persist: Path | None) -> int:
    """Let others go on with the threads of a host that is gone.

    Files that were not stored yet are lost, and the agents are told so. A host that has given a
    sign of life within the length of a lease is refused: stop it first.
    """
    return perform("commands.machines.hosts:declare_host_dead", persist=persist, name=name)


@hosts.command("adopt")
@click.argument("name")
@persist_option
def adopt(name: str, persist: Path | None) -> int:
    """Give this host the threads of a former name of this machine, whose files lie here."""
    return perform("commands.machines.hosts:adopt", persist=persist, name=name)


@hosts.command("forget")
@click.argument("name")
@persist_option
def forget(name: str, persist: Path | None) -> int:
    """Take a host that is gone, and has no threads, off the list."""
    return perform("commands.machines.hosts:forget", persist=persist, name=name)
