"""A command that runs with its own egress proxy; the proxy ends with the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sandbox.base import Execution
from sandbox.linux.egress.connection import EgressLimits
from sandbox.linux.egress.dialling import Destinations, PublicInternet
from sandbox.linux.egress.handover import environment, require_python
from sandbox.linux.egress.proxy import Proxy
from sandbox.linux.egress.rules import Rules, rules_for
from sandbox.linux.launch import Command
from sandbox.policy import Network, SandboxPolicy
from sandbox.result import ExecutionResult


@dataclass(frozen=True, slots=True)
class Egress:
    """The network and the limits that proxies use. Only code can replace the defaults."""

    world: Destinations = field(default_factory=PublicInternet)
    limits: EgressLimits = field(default_factory=EgressLimits)

    def of(self, policy: SandboxPolicy) -> WayOut | None:
        """Return the network access that `policy` allows, or None if it allows none.

        Raises `RuleError` for an invalid entry, and `SandboxUnavailable`.
        """
        if policy.network is Network.NONE:
            return None
        require_python()
        return WayOut(rules_for(policy.network, policy.allowed_hosts), self)


@dataclass(frozen=True, slots=True)
class WayOut:
    rules: Rules
    egress: Egress

    def start(self, command: Command, begin: Callable[[Command], Execution]) -> Execution:
        """Start a proxy, and then the command with this proxy by calling `begin`.

        Raises `SandboxSetupError`.
        """
        proxy = Proxy(self.rules, self.egress.world, self.egress.limits)
        try:
            with_network = replace(
                command,
                argv=proxy.begin(list(command.argv)),
                environment={**environment(), **command.environment},
                descriptors=(*command.descriptors, proxy.descriptor),
            )
            return EgressExecution(begin(with_network), proxy)
        except BaseException:
            proxy.close()
            raise


class EgressExecution(Execution):
    """A command with a proxy. `wait` also waits for the proxy, and adds its log to the result."""

    def __init__(self, inner: Execution, proxy: Proxy) -> None:
        self.pid = inner.pid
        self.marker = inner.marker
        self._inner = inner
        self._proxy = proxy
        self._result: ExecutionResult | None = None

    def kill(self) -> None:
        self._inner.kill()

    def wait(self) -> ExecutionResult:
        if self._result is None:
            try:
                result = self._inner.wait()
            finally:
                self._proxy.close()
            if not result.cancelled and not result.timed_out:
                self._proxy.check_command_ran(result.stderr)
            self._result = replace(result, connections=self._proxy.connections())
        return self._result
