"""The fixtures of hosts, for what programs keep when their thread moves."""

from tests.agents.machines.conftest import machines

__all__ = ["machines"]
