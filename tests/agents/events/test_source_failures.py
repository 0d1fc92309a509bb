"""What the tail does when its connection, or its own code, fails."""

from __future__ import annotations
