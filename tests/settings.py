"""Settings for tests: the project's own, on a throw-away data directory.

`VEL_TEST_DATABASE_URL` (set by `make test` for its second pass) puts them on PostgreSQL.
"""

import os
import tempfile
from pathlib import Path

_data = Path(
    os.environ.setdefault("VEL_DATA_DIR", tempfile.mkdtemp(prefix="vel-tests-", dir="/var/tmp"))
)
_data.chmod(0o711)
os.environ.setdefault(
    "VEL_SECRET_KEY", "not-a-secret-only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz"
)
for _name in (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "VEL_PROVIDER",
    "VEL_MODEL",
    "VEL_HTTPS",
    "VEL_DEBUG",
    "VEL_SKILLS_DIRS",
    "VEL_SECRET_KEYS",
    "VEL_GUARDRAILS",
    "VEL_HOOKS",
):
    os.environ.pop(_name, None)
os.environ["DATABASE_URL"] = os.environ.get("VEL_TEST_DATABASE_URL", "")

from velproject.settings import *  # noqa: E402, F403
from velproject.settings import DATABASES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if "sqlite" in DATABASES["default"]["ENGINE"]:
    # A file: several connections and processes look at it, as in life.
    _worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    DATABASES["default"]["TEST"] = {"NAME": str(_data / f"test-{_worker}.sqlite3")}
