"""The settings of the command line with short waits.

In seconds: `VEL_TEST_LEASE` is the lease, and `VEL_TEST_LOCK` the wait for SQLite's lock. The
default of both is the production value.
"""

import os

from velproject.cli.settings import *  # noqa: F403
from velproject.settings import DATABASES, VEL

if "VEL_TEST_LEASE" in os.environ:
    _lease = float(os.environ["VEL_TEST_LEASE"])
    VEL |= {"LEASE_SECONDS": _lease, "HEARTBEAT_SECONDS": _lease / 6}
if "VEL_TEST_LOCK" in os.environ:
    DATABASES["default"]["OPTIONS"]["timeout"] = float(os.environ["VEL_TEST_LOCK"])
