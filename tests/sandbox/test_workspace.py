"""The tree of a thread: its owner, its access rights and its refusals."""

import os
import stat
from pathlib import Path

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Limits
from sandbox.uids import FIRST_UID, UID_COUNT
from sandbox.workspace import prepare, uid_for
from tests.sandbox.places import AS_ROOT, account, workspace_in

as_user = pytest.mark.skipif(AS_ROOT, reason="needs an ordinary account")


def test_a_workspace_has_its_areas_closed_to_everybody_else(place: Path) -> None:
    workspace = workspace_in(place)
    assert workspace.root == place / "threads/thread"
    assert sorted(
        path.relative_to(workspace.root).as_posix() for path in workspace.root.rglob("*")
    ) == [
        "outputs",
        "shared",
        "shared/drafts",
        "shared/research",
        "skills",
        "user_uploads",
        "workspace",
    ]
    for path in (workspace.root, *workspace.root.rglob("*")):
        status = path.stat()
        assert stat.S_IMODE(status.st_mode) == 0o700
        assert (status.st_uid, status.st_gid) == (workspace.uid, workspace.gid)
    assert workspace.uid == (account() or os.geteuid())
    assert workspace.uid != 0


def test_preparing_again_keeps_everything(place: Path) -> None:
    first = workspace_in(place)
    (first.root / "workspace/file").write_text("kept")
    (first.root / "outputs").rmdir()
    assert workspace_in(place) == first
    assert (first.root / "workspace/file").read_text() == "kept"
    assert (first.root / "outputs").is_dir()
    assert prepare(place / "threads", "thread") == first


def test_the_policy_is_the_agents_view(place: Path) -> None:
    workspace = workspace_in(place)
    policy = workspace.policy(timeout=7, limits=Limits(processes=9))
    assert [(mount.target, mount.writable) for mount in policy.mounts] == [
        ("/sandbox/skills", False),
        ("/sandbox/user_uploads", False),
        ("/sandbox/shared", True),
        ("/sandbox/outputs", True),
        ("/sandbox/workspace", True),
        ("/skills", False),
    ]
    assert policy.working_dir == "/sandbox/workspace"
    assert (policy.uid, policy.timeout, policy.limits.processes) == (workspace.uid, 7, 9)


@pytest.mark.parametrize(
    "key", ["", ".", "..", "a/b", "/a", "a b", "a\n", "a\0", "é", "x" * 129, "../x", "~"]
)
def test_an_invalid_key_is_refused(place: Path, key: str) -> None:
    with pytest.raises(SandboxSetupError, match="key"):
        prepare(place, key, account())
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", ["", "workspace", "outputs", "shared"])
def test_a_link_in_the_place_of_a_directory_is_refused(place: Path, name: str) -> None:
    workspace = workspace_in(place)
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    victim = workspace.root / name
    victim.rename(place / "moved")
    victim.symlink_to(elsewhere)
    before = elsewhere.stat()
    with pytest.raises(SandboxSetupError, match="not a plain directory"):
        workspace_in(place)
    assert elsewhere.stat() == before
    assert list(elsewhere.iterdir()) == []


def test_the_operator_may_link_the_base(place: Path) -> None:
    (place / "disk").mkdir(mode=0o755)
    (place / "disk").chmod(0o711)
    (place / "base").symlink_to(place / "disk")
    assert prepare(place / "base", "thread", account()).root == place / "disk/thread"


@pytest.mark.bubblewrap
def test_links_below_shared_change_nothing_elsewhere(box: BubblewrapSandbox, place: Path) -> None:
    """`shared` can be written, so its subdirectories can be replaced."""
    (place / "victim").mkdir()
    before = (place / "victim").stat()
    box.execute(
        f"cd /sandbox/shared && rmdir research drafts && ln -s {place}/victim research && "
        "echo file > drafts"
    )
    workspace = workspace_in(place)
    assert (place / "victim").stat() == before
    assert (workspace.root / "shared/research").is_symlink()
    assert (workspace.root / "shared/drafts").is_file()


@pytest.mark.bubblewrap
def test_no_command_can_replace_an_area(box: BubblewrapSandbox, place: Path) -> None:
    result = box.execute(
        "cd /; rmdir /sandbox/outputs; mv /sandbox/shared /sandbox/x; rm -rf /sandbox/*"
    )
    assert result.exit_code != 0
    assert sorted(path.name for path in workspace_in(place).root.iterdir()) == [
        "outputs",
        "shared",
        "skills",
        "user_uploads",
        "workspace",
    ]


@pytest.mark.root
def test_a_tree_of_another_account_is_not_taken_over(place: Path) -> None:
    workspace = workspace_in(place)
    with pytest.raises(SandboxSetupError, match="belongs to uid"):
        prepare(place / "threads", "thread", account(1))
    os.chown(workspace.root / "workspace", 12345, 12345)
    with pytest.raises(SandboxSetupError, match="belongs to uid 12345"):
        workspace_in(place)


@pytest.mark.root
def test_an_interrupted_preparation_is_finished(place: Path) -> None:
    """As if the process died between creating a directory and changing its owner."""
    root = workspace_in(place).root
    for name in ("workspace", "shared/research"):
        os.chown(root / name, 0, 0)
        (root / name).chmod(0o755)
    workspace_in(place)
    for name in ("workspace", "shared/research"):
        status = (root / name).stat()
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (account(), 0o700)


@pytest.mark.root
def test_a_workspace_never_belongs_to_root(place: Path) -> None:
    for uid in (0, None):
        with pytest.raises(SandboxSetupError, match="would belong to root"):
            prepare(place / "threads", "new", uid)
    assert not (place / "threads/new").exists()


@pytest.mark.root
def test_a_base_that_the_account_cannot_enter_is_refused(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    with pytest.raises(SandboxSetupError, match=r"cannot enter .*closed.*/var/lib/vel"):
        prepare(place / "closed/threads", "thread", account())


@pytest.mark.root
def test_the_base_can_be_passed_through_but_not_listed(place: Path) -> None:
    old = os.umask(0o077)
    try:
        prepare(place / "threads", "thread", account())
    finally:
        os.umask(old)
    assert stat.S_IMODE((place / "threads").stat().st_mode) == 0o711


@as_user
def test_an_ordinary_user_changes_no_owner(place: Path) -> None:
    with pytest.raises(SandboxSetupError, match="only root can give files to another account"):
        prepare(place, "thread", os.geteuid() + 1)
    assert prepare(place, "thread", os.geteuid()).uid == os.geteuid()


def test_sandbox_accounts_are_a_bounded_range() -> None:
    assert uid_for(0) == FIRST_UID == 0x7A000000
    assert uid_for(UID_COUNT - 1) < 2**31 - 1
    for number in (-1, UID_COUNT):
        with pytest.raises(SandboxSetupError, match="no sandbox account"):
            uid_for(number)


def test_a_callers_own_directory_is_the_working_directory(place: Path) -> None:
    mine = place / "mine"
    mine.mkdir()
    owner = account() or os.geteuid()
    os.chown(mine, owner, -1)
    workspace = prepare(place / "threads", "thread", own_directory=mine)
    assert workspace.uid == owner
    result = BubblewrapSandbox(workspace.policy()).execute("pwd; echo kept > file; ls /sandbox")
    areas = ["outputs", "shared", "skills", "user_uploads", "workspace"]
    assert result.stdout.split() == ["/sandbox/workspace", *areas]
    assert (mine / "file").read_text() == "kept\n"


@pytest.mark.root
def test_a_callers_own_directory_that_belongs_to_root_is_refused(place: Path) -> None:
    mine = place / "mine"
    mine.mkdir()
    with pytest.raises(SandboxSetupError, match="chown"):
        prepare(place / "threads", "thread", own_directory=mine)


@pytest.mark.parametrize("path", ["/", "/tmp", "/run", "/proc/self/root/tmp", "~"])
def test_a_callers_own_directory_cannot_be_a_system_directory(place: Path, path: str) -> None:
    with pytest.raises(SandboxSetupError, match=r"never shows|separate directory"):
        prepare(place / "threads", "thread", own_directory=Path(path).expanduser())
