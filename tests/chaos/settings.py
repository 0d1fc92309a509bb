"""Settings of the clusters that are killed: the project's own, with leases of the test's length.

`VEL_TEST_LEASE` is the lease in seconds; the default is the production value.
`VEL_TEST_RUNS_PER_WORKER` is the number of runs that a worker process drives at the same time.
`VEL_TEST_DIES_WITH_RESULT` is a path that does not exist: the first worker that finishes a task
creates it and is killed while it hands over the result.
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

# Log the role of each process.
LOGGING["loggers"]["django-q"]["level"] = "INFO"

if "VEL_TEST_DIES_WITH_RESULT" in os.environ:
    INSTALLED_APPS += ["tests.chaos.dying.Dying"]
