"""Workers of the previous version and of this one execute runs on one database.

The old workers are asked to stop while they execute runs, as in a rolling restart. Their runs
continue in workers of the other version, and no call is executed twice.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import RunClock
from tests.chaos.storm import Storm, storm
from tests.chaos.test_worker_death import any_seed
from tests.support.cluster import ROOT, Cluster
from tests.support.previous import export, previous_commit
from tests.support.runs import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
    pytest.mark.slow,
]

LEASE = 5.0
RUNS = 20


@pytest.fixture(scope="module")
def previous() -> Iterator[Path]:
    """Yield a checkout of the previous version that every account can read."""
    commit = previous_commit()
    if not commit:
        pytest.skip("needs the git history")
    with tempfile.TemporaryDirectory(prefix="vel-previous-", dir="/var/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        export(commit, root)
        # The packages of this environment must not hide the code of the checkout.
        where = subprocess.run(
            [sys.executable, "-P", "-c", "import agents; print(agents.__file__)"],
            env={"PYTHONPATH": name},
            cwd=name,
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(where.stdout.strip()).is_relative_to(root)
        yield root


def drives(cluster: Cluster) -> list[str]:
    """Return the runs that workers of this cluster execute now."""
    return [
        run
        for pid in cluster.workers()
        for run in RunClock.objects.filter(
            lease_holder__contains=f":{pid}:", run__status="running"
        ).values_list("run_id", flat=True)
    ]


def replace_workers(running: Storm, following: Cluster) -> None:
    """Let both versions work, stop the first one during its runs, and finish in the second."""
    first = running.cluster
    running.start_runs(6)
    wait_until(lambda: drives(first), "a run in the first version")
    with following:
        running.start_runs(8)
        wait_until(lambda: drives(first) and drives(following), "runs in both versions")
        running.wait_for_progress()
        assert first.terminate()
        running.start_runs(RUNS - len(running.names))
        running.wait_for_all()
    running.check()
    assert len(running.names) == RUNS
    print(running.summary())


@pytest.mark.parametrize("way", ["upgrade", "way back"])
def test_no_run_fails_and_no_call_is_repeated_during_a_rolling_restart(
    directory: Path, previous: Path, way: str
) -> None:
    roots = [previous, ROOT] if way == "upgrade" else [ROOT, previous]
    with storm(directory, seed=any_seed(), lease=LEASE, root=roots[0]) as running:
        following = Cluster(
            directory,
            root=roots[1],
            ANTHROPIC_BASE_URL=running.server.url,
            ANTHROPIC_API_KEY="test-key",
            VEL_TEST_LEASE=str(LEASE),
        )
        following.log = directory / "following.log"
        replace_workers(running, following)
