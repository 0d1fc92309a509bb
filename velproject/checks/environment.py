"""Django system check of environment variables: a misspelt variable would have no effect."""

from __future__ import annotations

import os
import re
from typing import Any

from django.core.checks import CheckMessage, Warning, register

from agents.kernel.settings import installed, nearest, settings_of
from velproject.server_settings import ServerSettings

UNKNOWN_VARIABLE = "vel.W006"
_NOT_SETTINGS = re.compile(
    # Vel sets these for sandboxes, MCP servers and tests.
    r"VEL_(SANDBOX|STATE_DIR|TEST_.*)"
    # Docker and Kubernetes set these for a service with a name like vel-db.
    r"|.*_SERVICE_HOST|.*_SERVICE_PORT(_.*)?|.*_PORT|.*_PORT_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?"
)


@register()
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of variables that start with VEL_ but belong to no setting.

    This is a warning, not an error, because another program or another version of Vel may read
    them.
    """
    known = {
        variable
        for declared_in in (*installed(), ServerSettings)
        for setting in settings_of(declared_in)
        for variable in setting.variables
    }
    return [
        Warning(
            f"The environment variable {name} has no effect. {nearest(name, known)}".rstrip(),
            hint="docs/reference/settings.md lists the variables.",
            id=UNKNOWN_VARIABLE,
        )
        for name in sorted(os.environ)
        if name.startswith("VEL_") and name not in known and not _NOT_SETTINGS.fullmatch(name)
    ]
