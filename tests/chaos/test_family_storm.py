"""Workers that are killed while runs delegate: every parent continues once, with every answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents.models import Run
from tests.agents.engine.invariants import check_family, check_messages, check_run
from tests.agents.transition_guard import guarded_transitions
from tests.chaos.family_story import FamilyServer, check_fan, fan
from tests.chaos.storm import ENDED, Storm, check_history, check_watched
from tests.chaos.test_worker_death import SHORT_LEASE, any_seed, kill_a_worker
from tests.chaos.watching import Watchers
from tests.support.cluster import Cluster
from tests.support.runs import make_agent, make_user, start_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

AT_ONCE = 8


@dataclass
class FamilyStorm(Storm):
    """A storm whose runs delegate."""

    widths: dict[str, int] = field(default_factory=dict)
    """The number of children of a parent, by its name."""

    def start_fan(self, width: int) -> None:
        name = f"n{len(self.names)}"
        run = start_run(self.user, fan(name, width))
        self.names[run.pk] = name
        self.widths[name] = width
        self.watchers.follow(run.pk)

    def unfinished(self) -> list[str]:
        left = Run.objects.exclude(status__in=ENDED).values_list("pk", flat=True)
        return list(left)

    def check(self) -> None:
        assert self.server.violations == []
        for run in Run.objects.select_related("thread"):
            assert run.status == "completed", (run.status, run.error_code, run.error_message)
            check_run(run)
            check_family(run)
            check_messages(run)
            check_history(run)
            if run.pk in self.names:
                name = self.names[run.pk]
                check_fan(run, name, self.widths[name])
            else:
                assert run.parent is not None
                self.watchers.follow(run.pk)
            check_watched(run, self.watchers.seen(run.pk))


@contextmanager
def family_storm(
    directory: Path, *, lease: float = SHORT_LEASE, delay: float = 0.2
) -> Iterator[FamilyStorm]:
    seed = any_seed()
    print(f"seed {seed}")
    user = make_user()
    with (
        guarded_transitions(),
        FamilyServer(delay=delay, with_twigs=True) as server,
        Watchers() as watchers,
        Cluster(
            directory,
            ANTHROPIC_BASE_URL=server.url,
            ANTHROPIC_API_KEY="test-key",
            VEL_TEST_LEASE=str(lease),
        ) as cluster,
    ):
        make_agent(
            user,
            provider="anthropic",
            model="claude-sonnet-5-5",
            max_concurrent_subagents=AT_ONCE,
            subagent_depth=2,
        )
        yield FamilyStorm(directory, cluster, server, watchers, user, seed)


@pytest.mark.slow
def test_families_continue_when_their_workers_are_killed(directory: Path) -> None:
    with family_storm(directory) as running:
        for width in (5, 1):
            running.start_fan(width)
        for _ in range(2):
            running.wait_for_progress()
            running.pause(0.05, 0.3)
            kill_a_worker(running)
            running.start_fan(3)
        running.wait_for_all()
        running.check()
        print(running.summary())


@pytest.mark.storm
def test_families_continue_when_workers_are_killed_repeatedly(directory: Path) -> None:
    with family_storm(directory) as running:
        for number in range(40):
            if len(running.unfinished()) < 30:
                running.start_fan((1, 5, 20)[number % 3])
            running.wait_for_progress()
            running.pause()
            kill_a_worker(running)
        running.wait_for_all()
        running.check()
        assert running.delays(), "no run lost its worker in this storm"
        print(running.summary())
