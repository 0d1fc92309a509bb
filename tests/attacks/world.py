"""The targets of attacks on the host: a secret, sockets, processes, memory."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.account import Account, drop_to
from sandbox.uids import uid_for

_LIBC = ctypes.CDLL(None, use_errno=True)
_IPC_CREAT, _IPC_RMID = 0o1000, 0
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


class World:
    """Everything belongs to the account of the attacks, so only the sandbox protects it."""

    def __init__(self, place: Path, secret: str) -> None:
        self.place = place
        self.secret = secret
        root = os.geteuid() == 0
        uid = uid_for(1500) if root else os.geteuid()
        self.account = Account(uid, uid if root else os.getegid())
        self.prefix = drop_to(self.account) if root else []
        self.prefix = [part for part in self.prefix if part != "--no-new-privs"]
        self.heard = bytearray()
        self._victims: list[subprocess.Popen[bytes]] = []
        self._number = 0
        self.outside = self.directory("outside", 0o700)
        self.bare = self.directory("bare", 0o700)
        self.work = self.directory("work", 0o700)
        self.secret_path = self.file(self.outside / "secret", secret)
        self.file(self.outside / f"named-{secret}", "")
        self.tool = self.outside / "tool"
        shutil.copy("/usr/bin/tail", self.tool)
        with self.tool.open("ab") as stream:
            stream.write(secret.encode())
        self.own(self.tool)
        self.tool.chmod(0o700)

    def own(self, path: Path | str) -> None:
        os.chown(path, self.account.uid, self.account.gid)

    def directory(self, name: str, mode: int) -> Path:
        path = self.place / name
        path.mkdir(mode=mode)
        self.own(path)
        return path

    def file(self, path: Path, content: str, mode: int = 0o600) -> Path:
        path.write_text(content)
        path.chmod(mode)
        self.own(path)
        return path

    @contextmanager
    def services(self) -> Iterator[dict[str, object]]:
        """Start listening sockets, a terminal and shared memory. Yield how attacks find them."""
        threads: list[threading.Thread] = []
        opened: list[socket.socket] = []
        tag = f"vel-attack-{secrets.token_hex(6)}"

        def listen(sock: socket.socket, hand_out: bool = False) -> None:
            opened.append(sock)
            threads.append(threading.Thread(target=self._serve, args=(sock, hand_out)))

        tcp = socket.create_server(("0.0.0.0", 0))
        tcp6 = socket.create_server(("::1", tcp.getsockname()[1]), family=socket.AF_INET6)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(str(self.outside / "service"))
        unix.listen(64)
        self.own(self.outside / "service")
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0{tag}")
        abstract.listen(64)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(f"\0{tag}-dgram")
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(self.work / "left"))
        left.listen(64)
        left_datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        left_datagrams.bind(str(self.work / "left-dgram"))
        for name in ("left", "left-dgram"):
            self.own(self.work / name)
        for sock in (tcp, tcp6, udp, abstract, datagrams, left, left_datagrams):
            listen(sock)
        listen(unix, hand_out=True)
        master, slave = pty.openpty()
        os.set_inheritable(slave, False)
        terminal = os.ttyname(slave)
        self.own(terminal)
        threads.append(threading.Thread(target=self._read_terminal, args=(master,)))
        shared = Path("/dev/shm") / tag
        shared.write_text(self.secret)
        self.own(shared)
        temporary = Path("/tmp") / tag
        self.file(temporary, self.secret, 0o644)
        key = int.from_bytes(secrets.token_bytes(3), "big") | 1
        segment = self._plant_segment(key)
        locked = (self.outside / "locked").open("w")
        fcntl.lockf(locked, fcntl.LOCK_EX)
        for thread in threads:
            thread.daemon = True
            thread.start()
        try:
            yield {
                "port": tcp.getsockname()[1],
                "udp_port": udp.getsockname()[1],
                "host_address": _own_address(),
                "service": str(self.outside / "service"),
                "left": str(self.work / "left"),
                "abstract": tag,
                "terminal": terminal,
                "shared": str(shared),
                "temporary": str(temporary),
                "segment_key": key,
                "locked_inode": os.fstat(locked.fileno()).st_ino,
                "host_name": os.uname().nodename,
            }
        finally:
            locked.close()
            _LIBC.shmctl(segment, _IPC_RMID, None)
            shared.unlink()
            temporary.unlink()
            for sock in opened:
                sock.close()
            os.close(slave)

    def _serve(self, sock: socket.socket, hand_out: bool) -> None:
        while True:
            try:
                if sock.type == socket.SOCK_DGRAM:
                    self.heard += sock.recv(65536)
                    continue
                peer, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(peer, hand_out), daemon=True).start()

    def _answer(self, peer: socket.socket, hand_out: bool) -> None:
        with peer:
            peer.settimeout(3)
            try:
                if hand_out:
                    with self.secret_path.open() as stream:
                        socket.send_fds(peer, [b"x"], [stream.fileno()])
                self.heard += peer.recv(65536)
                peer.sendall(b"HTTP/1.0 200 OK\r\n\r\nSERVED\n")
            except OSError:
                pass  # the other side is gone

    def _read_terminal(self, master: int) -> None:
        while True:
            try:
                self.heard += os.read(master, 65536)
            except OSError:
                return

    def _plant_segment(self, key: int) -> int:
        found: int = _LIBC.shmget(key, 4096, _IPC_CREAT | 0o666)
        _LIBC.shmat.restype = ctypes.c_void_p
        address = _LIBC.shmat(found, None, 0)
        data = self.secret.encode()
        ctypes.memmove(address, data, len(data))
        _LIBC.shmdt(ctypes.c_void_p(address))
        return found

    def victim(self) -> int:
        """Start a process of the account with the secret in its environment, arguments, files."""
        named = str(self.outside / f"named-{self.secret}")
        with self.secret_path.open() as secret:
            process = subprocess.Popen(
                [*self.prefix, str(self.tool), "---disable-inotify", "-s600", "-f", named],
                env={"VEL_SECRET": self.secret},
                cwd=self.outside,
                start_new_session=True,
                stdin=secret,
            )
        self._victims.append(process)
        # setpriv executes the program in the same process.
        while os.readlink(f"/proc/{process.pid}/exe") != str(self.tool):
            time.sleep(0.001)
        return process.pid

    def end_victims(self) -> None:
        for process in self._victims:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._victims.clear()


def state_of(pid: int) -> tuple[object, ...]:
    """Return the properties of a process that no other process may change."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        if fields[0] in "ZX":
            return ("dead",)
        number = _IOPRIO_GET.get(os.uname().machine)
        return (
            "stopped" if fields[0] in "Tt" else "alive",
            fields[16],
            fields[38],
            tuple(sorted(os.sched_getaffinity(pid))),
            Path(f"/proc/{pid}/limits").read_text(),
            Path(f"/proc/{pid}/oom_score_adj").read_text(),
            _LIBC.syscall(number, 1, pid) if number else 0,
        )
    except (FileNotFoundError, ProcessLookupError):
        return ("dead",)


def processes_with(text: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            line = Path(f"/proc/{entry}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text.encode() in line:
            found.append(int(entry))
    return found


def _own_address() -> str:
    """Return this host's address in its network, or ""."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return ""
        address: str = sock.getsockname()[0]
    return "" if address.startswith("127.") else address


@contextmanager
def reachable_place() -> Iterator[Path]:
    """Yield a directory that every account can enter."""
    place = Path(tempfile.mkdtemp(prefix="vel-attacks-", dir="/var/tmp"))
    place.chmod(0o711)
    try:
        yield place
    finally:
        # Python's own removal fails on directories as deep as those of the attacks.
        subprocess.run(["rm", "-rf", str(place)], check=True)
