"""Two hosts with separate directories, one database and one storage, and runs on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection

from agents.models import Machine, Run, RunClock, Thread
from agents.models.database_clock import database_now
from agents.services.files.snapshots import last_stored
from agents.services.files.workspaces import workspace_location
from agents.services.machines.actions import declare_dead
from agents.services.thread_transfer.receiving import receive_thread
from tests.agents.transition_guard import guarded_transitions
from tests.chaos.storm import Storm, approver, canceller, people
from tests.chaos.story import ASKS, play
from tests.chaos.watching import Watchers
from tests.support.cluster import Cluster, database_url
from tests.support.machines import Machines
from tests.support.messages_api import MessagesServer
from tests.support.network import Network
from tests.support.runs import make_agent, make_user, wait_until

NAMES = ("a", "b")


@dataclass
class SeveralMachines:
    storm: Storm
    clusters: dict[str, Cluster]
    machines: Machines
    lease: float
    network: Network | None

    def _fetched(self, thread: Thread) -> str:
        """Fetch the files of a thread without a host to "web", and return that name.

        The run of this thread ended before it was moved, or was cancelled during the move.
        """
        state = last_stored(thread.pk)
        with self.machines.on("web"):
            if state is not None:
                receive_thread(workspace_location(thread), thread.placement + 1, state.manifest)
        return "web"

    def held_by(self, name: str) -> list[str]:
        return list(Thread.objects.filter(host=name).values_list("pk", flat=True))

    def driven_on(self, name: str) -> int:
        clocks = RunClock.objects.filter(run__status="running", run__thread__host=name)
        return clocks.exclude(lease_holder="").count()

    def wait_until_both_drive(self) -> None:
        wait_until(lambda: all(self.driven_on(name) for name in NAMES), "runs on both hosts")

    def let_die(self, name: str) -> int:
        """Wait until a host is silent and declare it dead. Return the number of moved threads."""

        def is_silent() -> bool:
            seen = Machine.objects.values_list("seen_at", flat=True).get(pk=name)
            return database_now() - seen > self.lease

        wait_until(is_silent, f"the silence of {name}")
        return declare_dead(name)

    def check(self) -> None:
        """Make the checks of the storm with the files of each thread from its current host."""
        base = self.storm.directory / "workspaces"
        base.mkdir(exist_ok=True)
        for thread in Thread.objects.all():
            place = (
                self.machines.data(thread.host or self._fetched(thread)) / "workspaces" / thread.pk
            )
            link = base / thread.pk
            link.unlink(missing_ok=True)
            link.symlink_to(place)
        print(*self.storm.server.violations, sep="\n")
        self.storm.check()
        for run_id in self.storm.names:
            run = Run.objects.get(pk=run_id)
            assert run.error_code == ""


@contextmanager
def two_machines(
    directory: Path, *, seed: int, lease: float, at_once: int = 4, cut: bool = False
) -> Iterator[SeveralMachines]:
    """Start two hosts that drive `at_once` runs each. `cut`: the network of `a` can be cut."""
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    print(f"seed {seed}")
    machines = Machines(directory)
    user = make_user()
    with ExitStack() as stack:
        stack.enter_context(machines.on("web", LEASE_SECONDS=lease, HOST_HEARTBEAT_SECONDS=lease))
        stack.enter_context(guarded_transitions())
        server = stack.enter_context(MessagesServer(play))
        watchers = stack.enter_context(Watchers())
        network = stack.enter_context(Network()) if cut else None
        clusters = {}
        for name in NAMES:
            where = {"ANTHROPIC_BASE_URL": server.url}
            inside: list[str] = []
            if network is not None and name == "a":
                inside = network.inside
                model = stack.enter_context(network.forward(urlsplit(server.url).port or 0))
                url = urlsplit(database_url())
                socket = f"{parse_qs(url.query)['host'][0]}/.s.PGSQL.5432"
                port = stack.enter_context(network.forward(socket))
                where = {
                    "ANTHROPIC_BASE_URL": f"http://{network.address}:{model}",
                    "DATABASE_URL": f"postgresql://{url.username}@{network.address}:{port}"
                    f"{url.path}",
                }
            data = machines.data(name)
            data.mkdir(mode=0o711)
            clusters[name] = stack.enter_context(
                Cluster(
                    data,
                    workers=1,
                    inside=inside,
                    VEL_HOST=name,
                    VEL_STORAGE_URL=f"file://{directory}/storage",
                    VEL_TEST_LEASE=str(lease),
                    VEL_TEST_RUNS_PER_WORKER=str(at_once),
                    ANTHROPIC_API_KEY="test-key",
                    **where,
                )
            )
        make_agent(
            user,
            provider="anthropic",
            model="claude-sonnet-5-5",
            sandbox=True,
            interrupt_on=ASKS,
        )
        storm = Storm(directory, clusters["a"], server, watchers, user, seed)
        stack.enter_context(people(storm, approver, canceller))
        yield SeveralMachines(storm, clusters, machines, lease, network)
