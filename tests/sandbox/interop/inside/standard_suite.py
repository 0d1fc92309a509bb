"""The public standard tests of deepagents' sandboxes, with Vel's and with their own backend."""

from collections.abc import Iterator

import pytest
from deepagents.backends.local_shell import LocalShellBackend
from langchain_tests.integration_tests import SandboxIntegrationTests

from sandbox.interop.deepagents import LocalExecutionBackend
from tests.sandbox.places import reachable_directory


class TestVel(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[LocalExecutionBackend]:
        with reachable_directory() as place:
            backend = LocalExecutionBackend(place / "root")
            yield backend
            backend.close()

    @property
    def sandbox_root_dir(self) -> str:
        return "/tmp/test_sandbox_ops"


class TestLocalShell(SandboxIntegrationTests):
    """deepagents' own way to run commands on this machine, without a sandbox."""

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[LocalShellBackend]:
        with reachable_directory() as place:
            yield LocalShellBackend(
                place, virtual_mode=False, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}
            )

    @pytest.fixture
    def sandbox_test_root(self, tmp_path_factory: pytest.TempPathFactory) -> str:
        return str(tmp_path_factory.mktemp("operations"))
