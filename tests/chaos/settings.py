"""Settings of the clusters that are killed: the project's own, with leases as the test wants them.

`VEL_TEST_LEASE` is the lease in seconds; without it leases are as long as in life.
`VEL_TEST_RUNS_PER_WORKER` is how many runs a worker process drives at once.
`VEL_TEST_DIES_WITH_RESULT` is a path that does not exist: the first worker that has done a task
makes it and is killed while it hands over the result.
"""

import os

from velproject.settings import *  # noqa: F403
from velproject.settings import INSTALLED_APPS, LOGGING, VEL

if "VEL_TEST_LEASE" in os.environ:
    _lease = float(os.environ["VEL_TEST_LEASE"])
    VEL |= {"LEASE_SECONDS": _lease, "HEARTBEAT_SECONDS": _lease / 6}
    VEL |= {"HOST_HEARTBEAT_SECONDS": _lease / 6}
if "VEL_TEST_RUNS_PER_WORKER" in os.environ:
    VEL |= {"RUNS_PER_WORKER": int(os.environ["VEL_TEST_RUNS_PER_WORKER"])}
VEL |= {"RETRY_BASE_SECONDS": 0.05}

# Which process is which.
LOGGING["loggers"]["django-q"]["level"] = "INFO"

if "VEL_TEST_DIES_WITH_RESULT" in os.environ:
    INSTALLED_APPS += ["tests.chaos.dying.Dying"]
