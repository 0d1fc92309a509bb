"""Uploads and downloads while an agent plants links, pipes and unusual names."""

import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.interop.deepagents import LocalExecutionBackend
from sandbox.interop.places import Places
from sandbox.policy import Mount, SandboxPolicy
from tests.sandbox.places import reachable_directory

SECRET = b"a secret of the host"
ROUNDS = 600
SWAP = """
import ctypes, os
os.symlink("%s", "link")
rename, here, exchange = ctypes.CDLL(None).renameat2, -100, 2
while not os.path.exists("stop"):
    assert rename(here, b"real", here, b"link", exchange) == 0
"""
"""Exchange a directory and a link as fast as a process can."""


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        (path / "secret").write_bytes(SECRET)
        (path / "skills").mkdir(mode=0o755)
        (path / "skills/SKILL.md").write_text("a skill")
        (path / "skills/SKILL.md").chmod(0o666)  # only the mount prevents commands from writing
        (path / "skills").chmod(0o777)
        yield path


@pytest.fixture
def backend(place: Path) -> Iterator[LocalExecutionBackend]:
    backend = LocalExecutionBackend(place / "root", skills_dir=place / "skills")
    yield backend
    backend.close()


def upload(backend: LocalExecutionBackend, path: str) -> str | None:
    return backend.upload_files([(path, b"uploaded")])[0].error


def download(backend: LocalExecutionBackend, path: str) -> tuple[bytes | None, str | None]:
    response = backend.download_files([path])[0]
    return response.content, response.error


def test_paths_outside_are_refused(backend: LocalExecutionBackend, place: Path) -> None:
    root = backend.root_dir
    for path in (
        f"{place}/secret",
        f"{root}/../secret",
        f"{root}/x/../../secret",
        f"{root}/x/../file",  # its target depends on whether x is a link
        "/etc/passwd",
        "/",
        "~/x",
        "relative",
        "",
        f"{root}\0/../secret",
        f"{root}x/file",
        f"/proc/self/root{place}/secret",
        "/tmp/../etc/passwd",
        f"{root}/\ud800",
        "/" + "a/" * 3000,
    ):
        assert download(backend, path) == (None, "invalid_path"), path
        assert upload(backend, path) == "invalid_path", path
    assert (place / "secret").read_bytes() == SECRET


def test_unusual_names_are_accepted(backend: LocalExecutionBackend) -> None:
    for name in ("line\nbreak", " ", "-rf", "$(id)", "'\"", "ü\u202e", "..."):
        path = f"{backend.root_dir}/{name}"
        assert upload(backend, path) is None
        assert download(backend, path) == (b"uploaded", None)
    assert backend.execute("find . -type f | wc -l").output.strip() == "8"  # one has two lines


def test_planted_links_are_not_followed(backend: LocalExecutionBackend, place: Path) -> None:
    backend.execute(
        f"ln -s {place}/secret file; ln -s {place} up; ln -s .. parent; ln -s /proc/self proc;"
        f"ln -s {place}/secret /tmp/file; ln -s {place} /tmp/up; ln -s loop loop"
    )
    root = backend.root_dir
    for path in (
        f"{root}/file",
        f"{root}/up/secret",
        f"{root}/parent/secret",
        f"{root}/proc/environ",
        "/tmp/file",
        "/tmp/up/secret",
        f"{root}/loop",
    ):
        content, error = download(backend, path)
        assert content is None
        assert error == "invalid_path", path
        assert upload(backend, path) in ("invalid_path", "permission_denied"), path
    assert (place / "secret").read_bytes() == SECRET
    assert sorted(os.listdir(place)) == ["root", "secret", "skills"]


def test_pipes_sockets_and_directories_do_not_block_the_host(
    backend: LocalExecutionBackend,
) -> None:
    backend.execute("mkfifo pipe; mkdir directory; touch shut; chmod 0 shut")
    root = backend.root_dir
    os.mknod(f"{root}/socket", stat.S_IFSOCK | 0o600)  # commands cannot create one
    assert download(backend, f"{root}/pipe") == (None, "permission_denied")
    assert download(backend, f"{root}/socket") == (None, "permission_denied")
    assert download(backend, f"{root}/shut") == (None, "permission_denied")
    assert download(backend, f"{root}/directory") == (None, "is_directory")
    assert upload(backend, f"{root}/directory") == "is_directory"
    assert upload(backend, f"{root}/pipe") == "permission_denied"
    assert upload(backend, f"{root}/pipe/below") == "invalid_path"


def test_a_huge_file_is_refused_and_not_read(backend: LocalExecutionBackend) -> None:
    backend.execute("truncate -s 400M huge")
    content, error = download(backend, f"{backend.root_dir}/huge")
    assert content is None
    assert error is not None
    assert "larger than 67,108,864 bytes" in error


def test_a_race_of_links_leaks_nothing(backend: LocalExecutionBackend, place: Path) -> None:
    root = backend.root_dir
    backend.execute("mkdir real; echo inside > real/secret")
    swapping = threading.Thread(target=backend.execute, args=(f"python3 -c '{SWAP % place}'",))
    swapping.start()
    seen, rounds = set(), 0
    try:
        while rounds < ROUNDS or len(seen) < 2:
            assert swapping.is_alive()
            rounds += 1
            content, _ = download(backend, f"{root}/real/secret")
            seen.add(content)
            upload(backend, f"{root}/real/written")
    finally:
        (root / "stop").touch()
        swapping.join()
    assert seen == {b"inside\n", None}
    assert sorted(os.listdir(place)) == ["root", "secret", "skills"]


def test_skills_are_read_only(backend: LocalExecutionBackend, place: Path) -> None:
    assert download(backend, "/skills/SKILL.md") == (b"a skill", None)
    assert upload(backend, "/skills/SKILL.md") == "permission_denied"
    assert "Read-only" in backend.execute("echo x >> /skills/SKILL.md").output
    assert backend.write("/skills/new/file", "x").error is not None
    assert (place / "skills/SKILL.md").read_text() == "a skill"
    assert os.listdir(place / "skills") == ["SKILL.md"]


def test_skills_have_the_path_of_vel_too(backend: LocalExecutionBackend, place: Path) -> None:
    assert download(backend, "/sandbox/skills/SKILL.md") == (b"a skill", None)
    assert upload(backend, "/sandbox/skills/SKILL.md") == "permission_denied"
    assert backend.execute("cat /sandbox/skills/SKILL.md").output == "a skill"
    assert "Read-only" in backend.execute("echo x >> /sandbox/skills/SKILL.md").output
    assert (place / "skills/SKILL.md").read_text() == "a skill"


@pytest.mark.parametrize("root", ["/skills/x", "/sandbox", "/sandbox/skills/x"])
def test_a_root_at_the_paths_of_skills_is_refused(place: Path, root: str) -> None:
    """Otherwise commands would write where the model expects read-only skills."""
    with pytest.raises(SandboxSetupError, match="overlaps"):
        Places(
            SandboxPolicy(mounts=(Mount(place, root, writable=True),), working_dir=root),
            place / "skills",
        )


def test_skills_that_commands_could_write_are_refused(place: Path) -> None:
    (place / "root/skills").mkdir(parents=True)
    os.chown(place / "root", *_account())
    for skills in (place / "root/skills", place / "root", place):
        with pytest.raises(SandboxSetupError, match="overlap"):
            LocalExecutionBackend(place / "root", skills_dir=skills)
    with pytest.raises(SandboxSetupError, match="does not exist"):
        LocalExecutionBackend(place / "root", skills_dir=place / "missing")


@pytest.mark.parametrize("below", ["root", "way/to/root"])
def test_the_parents_of_a_root_in_tmp_cannot_be_replaced(below: str) -> None:
    """bubblewrap creates the parents of a mount before it hides the host in /oldroot.

    Without protection, it would create directories on the host at the target of a planted link.
    """
    directory = Path(tempfile.mkdtemp(prefix="vel-interop-test-", dir="/tmp"))
    directory.chmod(0o711)
    victim = directory / "victim"
    victim.mkdir()
    os.chown(victim, *_account())
    backend = LocalExecutionBackend(directory / below)
    try:
        done = backend.execute(
            f"cd /tmp; mv {directory} aside; rm -rf {directory}; rmdir {directory};"
            f" ln -s /oldroot{victim} {directory.name}; ln -sfn /oldroot{victim} {directory}/way"
        )
        assert "Device or resource busy" in done.output
        assert backend.execute("pwd").output == f"{directory}/{below}\n"
        assert os.listdir(victim) == []
    finally:
        backend.close()
        shutil.rmtree(directory)


def _account() -> tuple[int, int]:
    return (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
