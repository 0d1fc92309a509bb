"""A child process of `vel up`: `python -m velproject.child web|workers`.

A child must not outlive its supervisor, however the supervisor ends. The child's main process holds
the reading end of a pipe whose writing end only the supervisor has: end of file means that the
supervisor has ended. The kernel (Linux) kills the processes that the child forks when their parent
dies.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from velproject.lives import Life, life_under_supervisor

if TYPE_CHECKING:
    from django_q.cluster import Cluster

PR_SET_PDEATHSIG = 1
SETTINGS = "velproject.settings"
SETTINGS_WITHOUT_ADMIN = "velproject.cli.settings"
SHARED = (
    "agents.tasks",
    "agents.services.agent_definitions.files",
    "text_scanner.scanning",
    "sandbox.linux.egress.execution",
)
"""The engine, and the modules that it imports at first use."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="velproject.child")
    parser.add_argument("role", choices=sorted(_ROLES))
    parser.add_argument("--life-fd", type=int, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("--listen-fd", type=int)
    parser.add_argument("--life")
    parser.add_argument("--dead", nargs="*", default=())
    parser.add_argument("--news-fd", type=int)
    arguments = parser.parse_args()
    threading.Thread(
        target=end_with_supervisor, args=(arguments.life_fd, arguments.grace), daemon=True
    ).start()
    life = Life()
    if arguments.life is not None:
        life = life_under_supervisor(arguments.life, arguments.dead, arguments.news_fd)
    _ROLES[arguments.role](arguments, life)


def end_with_supervisor(life_fd: int, grace: float) -> None:
    """Wait until the supervisor has ended, then stop this process as after SIGTERM.

    After `grace` seconds, kill its process group.
    """
    while os.read(life_fd, 1):
        pass
    # No message is possible: the supervisor was reading standard output.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os.killpg(0, signal.SIGKILL)


def kill_forks_with_parent() -> None:
    """Make the kernel kill every later fork of this process when this process dies.

    django-q2's workers do not watch their parents and would survive a SIGKILL of them. Commands in
    sandboxes are not forked by Python and have their own protection.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    parent = [os.getpid()]

    def remember() -> None:
        parent[0] = os.getpid()

    def tie() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent[0]:  # the parent died before the kernel knew of this request
            os._exit(1)

    os.register_at_fork(before=remember, after_in_child=tie)


@contextmanager
def imports_without_collection() -> Iterator[None]:
    """Exclude imported modules from garbage collection, during the imports and afterwards.

    Modules are never released. The collector would take a fifth of the start time, and would later
    write to memory that forked processes share.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def set_up_without_admin() -> None:
    """Set Django up without the modules of the admin, which only web pages need.

    Processes that this one starts get the original settings.
    """
    meant = os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    if meant == SETTINGS:
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_WITHOUT_ADMIN
    try:
        import_module("django").setup()
    finally:
        os.environ["DJANGO_SETTINGS_MODULE"] = meant


def run_workers(life: Life | None = None) -> None:
    """Run one cluster of workers until SIGTERM. Send the signal to this process only.

    The parent imports all modules of the workers, also those that only some runs need: the imports
    take more than a second, and forked workers share their memory.
    """
    kill_forks_with_parent()
    with imports_without_collection():
        set_up_without_admin()
        cluster = preload_workers(life or Life())
    cluster.start()
    cluster.sentinel.join()


def preload_workers(life: Life) -> Cluster:
    """Import the modules that workers need, register this host, and return a cluster.

    The cluster is not started. `life` gives its workers their names.

    Raises:
        MachineRefused: This host may not start workers.
    """
    for module in import_module(
        "agents.services.agent_definitions.settings_places"
    ).modules_wanted():
        import_module(module)
    for name in SHARED:
        import_module(name)
    # This also imports the modules of the features' tools.
    import_module("agents.middleware.registry").built_in_tools()
    ours = import_module("velproject.cluster")
    for name in ours.modules_of_features():
        import_module(name)
    ours.join_before_forks()
    cluster: Cluster = ours.VelCluster(life)
    return cluster


def run_web(listen_fd: int, life: Life | None = None) -> None:
    """Run the web server on a socket that the supervisor has bound.

    A restart of the server therefore loses no connection.
    """
    with imports_without_collection():
        # Twisted's reactor must be installed before anything else imports Twisted.
        server = import_module("velproject.web.server").PatientServer
        import_module("velproject.web.connection_pool").pool_connections()
        application = import_module("velproject.asgi").application
        slow_requests = import_module("velproject.web.slow_requests")
        # Import these now; otherwise, the first request would wait for it.
        _ = import_module("django.urls").get_resolver().url_patterns
    wanted = import_module("django.conf").settings.CONNECTIONS
    possible = slow_requests.connections_possible(wanted)
    slow_requests.limit_requests(slow_requests.Patience(connections=possible))
    import_module("agents.services.open_connections").limit_lasting(possible)
    server(
        application=application,
        endpoints=[f"fd:fileno={listen_fd}"],
        server_name="",
        on_first_answer=(life or Life()).say_that_it_works,
    ).run()


_ROLES: dict[str, Callable[[argparse.Namespace, Life], None]] = {
    "workers": lambda _, life: run_workers(life),
    "web": lambda arguments, life: run_web(arguments.listen_fd, life),
}

if __name__ == "__main__":
    main()
