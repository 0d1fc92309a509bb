"""Settings for tests: the project's own, with a temporary data directory.

`VEL_TEST_DATABASE_URL` (set by `make test` for its second pass) selects PostgreSQL.
"""

import os
import tempfile
from pathlib import Path

from tests.support import process_guard

# The first process creates a directory, and each pytest worker creates one inside it, so that a
# test can check that no files are left. Subprocesses of tests inherit it. The guard deletes them.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if "VEL_DATA_DIR" not in os.environ:
    process_guard.start()
    os.environ["VEL_DATA_DIR"] = tempfile.mkdtemp(
        prefix="vel-tests-", dir=os.environ.get("VEL_TEST_ROOT", "/var/tmp")
    )
    os.environ["VEL_TEST_DATA_OF"] = _worker
    # See support/migrated.py. A pytest that a test runs uses the files of its parent.
    os.environ.setdefault("VEL_TEST_SHARED_DIR", os.environ["VEL_DATA_DIR"])
elif os.environ.get("VEL_TEST_DATA_OF", _worker) != _worker:
    process_guard.start()
    os.environ["VEL_DATA_DIR"] = tempfile.mkdtemp(dir=os.environ["VEL_DATA_DIR"])
    os.environ["VEL_TEST_DATA_OF"] = _worker
_data = Path(os.environ["VEL_DATA_DIR"])
_data.chmod(0o711)
os.environ.setdefault(
    "VEL_SECRET_KEY", "not-a-secret-only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz"
)
for _name in (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "VEL_PROVIDER",
    "VEL_MODEL",
    "VEL_CORS_ORIGINS",
    "VEL_HTTPS",
    "VEL_DEBUG",
    "VEL_RESERVE_BYTES",
    "VEL_SKILLS_DIRS",
    "VEL_SECRET_KEYS",
    "VEL_GUARDRAILS",
    "VEL_HOOKS",
    "VEL_TOOLS",
    "VEL_HOST",
    "VEL_STORAGE_URL",
    "VEL_SHARED_WORKSPACES",
    "VEL_HOST_DEAD_AFTER",
    "VEL_METRICS_TOKEN",
    "VEL_LOG_FORMAT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
):
    os.environ.pop(_name, None)
os.environ["VEL_TITLE_MODEL"] = "off"  # no model calls that a test does not expect
os.environ["VEL_SCRIPTS_DIR"] = "/"  # tests store scripts in any directory
os.environ["DATABASE_URL"] = os.environ.get("VEL_TEST_DATABASE_URL", "")

from velproject.settings import *  # noqa: E402, F403
from velproject.settings import DATABASES, VEL  # noqa: E402

# Tests send more requests in a minute than people do. The tests of the limits set them.
VEL = {
    **VEL,
    "CHECK_EVENTS": True,
    "SIGN_INS": 0,
    "ADDRESS_SIGN_INS": 0,
    "API_USER_REQUESTS": 0,
    "API_TOKEN_REQUESTS": 0,
    "API_FAILED_SIGN_INS": 0,
}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
if "sqlite" in DATABASES["default"]["ENGINE"]:
    # A file, because several connections and processes use it, as in production.
    DATABASES["default"]["TEST"] = {"NAME": str(_data / f"test-{_worker}.sqlite3")}
else:
    DATABASES["default"]["TEST"] = {"NAME": f"test_{_worker}"}
