"""The fixtures of hosts, for the stored state of programs when their thread moves."""

from tests.agents.machines.conftest import machines

__all__ = ["machines"]
