"""The meaning of Seatbelt profiles: the rules for each path, applied without a Mac.

A small parser of the profile language replaces the kernel: the last matching rule decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.macos.profile import Profile, ShownPath, render_profile

WORK = Path("/Users/me/work")
DATA = Path("/Users/me/data")
TEMPORARY = Path("/private/var/folders/ab/T/vel-sandbox-1")
SHOWN = [ShownPath(DATA, False), ShownPath(WORK, True)]

_TOKEN = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))', re.DOTALL)


def read(text: str) -> list[Any]:
    """Parse a profile into nested lists; strings become ("text", value), names stay unchanged."""
    stack: list[list[Any]] = [[]]
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        assert found, f"not the profile language at {at}: {text[at : at + 40]!r}"
        at = found.end()
        bracket, string, name = found.groups()
        if bracket == "(":
            stack.append([])
        elif bracket == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif string is not None:
            stack[-1].append(("text", re.sub(r"\\(.)", r"\1", string)))
        else:
            stack[-1].append(name)
    assert len(stack) == 1, "brackets do not match"
    return stack[0]


@dataclass
class Rules:
    rules: list[Any]
    parameters: dict[str, str]

    def may(self, operation: str, subject: str = "") -> bool:
        allowed = False
        for action, *rest in self.rules:
            if action not in ("allow", "deny"):
                continue
            operations = [each for each in rest if isinstance(each, str)]
            filters = [each for each in rest if isinstance(each, list)]
            if any(_names(each, operation) for each in operations) and (
                not filters or any(self._matches(each, subject) for each in filters)
            ):
                allowed = action == "allow"
        return allowed

    def reads(self, path: str) -> bool:
        return self.may("file-read-data", path)

    def writes(self, path: str) -> bool:
        kinds = ("data", "create", "unlink", "mode", "xattr", "flags", "times", "owner")
        answers = {self.may(f"file-write-{kind}", path) for kind in kinds}
        assert len(answers) == 1, f"some writes to {path} are allowed and others not"
        return answers.pop()

    def _matches(self, condition: list[Any], subject: str) -> bool:
        kind, *values = condition
        value = self._value(values[0])
        path = PurePosixPath(subject)
        match kind:
            case "literal" | "global-name" | "sysctl-name":
                return subject == value
            case "subpath":
                return path == PurePosixPath(value) or PurePosixPath(value) in path.parents
            case "path-ancestors":
                return path in PurePosixPath(value).parents
            case "sysctl-name-prefix" | "ipc-posix-name-prefix":
                return subject.startswith(value)
            case "remote":
                assert value == "unix-socket"
                assert values[1][0] == "path-literal"
                return subject == self._value(values[1][1])
            case "target" | "socket-domain":
                return subject == value
        raise AssertionError(f"an unknown filter: {condition}")

    def _value(self, given: Any) -> str:
        if isinstance(given, tuple):
            return str(given[1])
        if isinstance(given, list):
            assert given[0] == "param"
            return self.parameters[given[1][1]]
        return str(given)


def _names(rule: str, operation: str) -> bool:
    return rule in ("default", operation) or (
        rule.endswith("*") and operation.startswith(rule[:-1])
    )


def rules_of(profile: Profile) -> Rules:
    return Rules(read(profile.text), dict(profile.parameters))


@pytest.fixture(scope="module")
def rules() -> Rules:
    return rules_of(render_profile(SHOWN, TEMPORARY))


def test_everything_without_a_rule_is_denied(rules: Rules) -> None:
    assert rules.rules[:2] == [["version", "1"], ["deny", "default"]]
    for operation in ("mach-register", "iokit-open", "appleevent-send", "lsopen", "file-mknod"):
        assert not rules.may(operation, "anything")


def test_only_the_writable_mounts_and_the_own_directory_are_written(rules: Rules) -> None:
    for path in (WORK, WORK / "a/b", TEMPORARY / "x"):
        assert rules.writes(str(path))
        assert rules.reads(str(path))
    for refused in (
        *(str(DATA), f"{DATA}/x", "/Users/me", "/Users/me/work2", "/Users/me/other", "/Users"),
        *("/", "/usr/bin/x", "/usr/local/bin/x", "/opt/homebrew/bin/x", "/private/tmp/x"),
        *("/private/var/folders/ab/T/other", "/private/var/tmp/x", "/private/etc/hosts"),
        *("/Library/LaunchAgents/x", "/System/Volumes/Data/Users/me/project/x"),
    ):
        assert not rules.writes(refused), refused


def test_programs_and_mounts_can_be_read(rules: Rules) -> None:
    for path in (
        *("/usr/bin/env", "/bin/bash", "/usr/lib/dyld", "/private/etc/hosts", "/dev/urandom"),
        *(f"{DATA}/x", "/opt/homebrew/Cellar/python/x", "/private/etc/ssl/cert.pem", "/"),
    ):
        assert rules.reads(path), path


@pytest.mark.parametrize(
    "path",
    [
        *("/Users", "/Users/me", "/Users/me/.ssh/id_ed25519", "/Users/me/.zsh_history"),
        *("/Users/me/Library/Keychains/login.keychain-db", "/Library/Keychains/System.keychain"),
        *("/Users/me/Library/Cookies/Cookies.binarycookies", "/Users/you/file"),
        *("/System/Volumes/Data/Users/me/.ssh/id", "/Volumes/Backup/x", "/private/etc/sudoers"),
        *("/private/etc/master.passwd", "/private/var/db/dslocal/nodes/Default/users/me.plist"),
        *("/private/tmp/com.apple.launchd.x/Listeners", "/private/var/run/docker.sock"),
        *("/private/tmp/x", "/opt/homebrew/var/postgres/pg_hba.conf", "/opt/homebrew/etc/x"),
        *("/usr/local/etc/x", "/usr/local/var/db", "/Applications/X.app/x", "/dev/disk0"),
        *("/dev/tty", "/Library/Preferences/x", "/private/var/root/x", "/usr/x"),
    ],
)
def test_other_paths_cannot_be_read(rules: Rules, path: str) -> None:
    assert not rules.reads(path)


def test_the_parents_of_a_mount_can_be_passed_but_not_listed(rules: Rules) -> None:
    for path in ("/Users", "/Users/me", "/tmp", "/var", "/etc", "/private"):
        assert rules.may("file-read-metadata", path), path
        assert not rules.reads(path), path
    assert not rules.may("file-read-metadata", "/Users/me/.ssh")
    assert not rules.may("file-read-metadata", "/Users/you")


def test_a_read_only_mount_inside_a_writable_one_stays_read_only() -> None:
    skills = WORK / "a/skills"
    rules = rules_of(render_profile([*SHOWN, ShownPath(skills, False)], TEMPORARY))
    assert rules.reads(f"{skills}/SKILL.md")
    assert not rules.writes(f"{skills}/SKILL.md")
    assert not rules.writes(str(skills))
    assert rules.writes(f"{WORK}/a/other")
    # Its parent cannot be moved away either, which would remove it from the rule.
    assert not rules.may("file-write-unlink", f"{WORK}/a")
    assert not rules.may("file-write-unlink", str(WORK))
    assert rules.may("file-write-create", f"{WORK}/a")


def test_protected_files_cannot_be_created_or_changed() -> None:
    protected = [WORK / ".git/hooks", WORK / ".envrc"]
    rules = rules_of(render_profile(SHOWN, TEMPORARY, protected=protected))
    assert rules.reads(f"{WORK}/.git/hooks/pre-commit")
    for path in (".git/hooks", ".git/hooks/pre-commit", ".envrc"):
        assert not rules.writes(f"{WORK}/{path}")
    assert not rules.may("file-write-unlink", f"{WORK}/.git")
    assert rules.may("file-write-create", f"{WORK}/.git/index.lock")
    assert rules.writes(f"{WORK}/.git/objects/x")
    assert rules.writes(f"{WORK}/source.py")


def test_a_later_writable_mount_covers_a_read_only_one() -> None:
    rules = rules_of(
        render_profile([ShownPath(WORK, False), ShownPath(WORK / "out", True)], TEMPORARY)
    )
    assert rules.writes(f"{WORK}/out/x")
    assert rules.writes(f"{WORK}/out")
    assert not rules.writes(f"{WORK}/x")


def test_no_file_gets_set_id_bits_or_a_second_name(rules: Rules) -> None:
    for path in (f"{WORK}/x", f"{TEMPORARY}/x"):
        assert not rules.may("file-write-setugid", path)
        assert not rules.may("file-link", path)
        assert not rules.may("file-clone", path)


def test_only_the_own_processes_are_seen_and_signalled(rules: Rules) -> None:
    for operation in ("signal", "process-info-pidinfo", "process-info-listpids"):
        assert rules.may(operation, "same-sandbox") or operation != "signal"
        assert not rules.may(operation, "others")
    for name in ("kern.procargs2.1", "kern.proc.all.0", "kern.bootargs", "net.routetable.0"):
        assert not rules.may("sysctl-read", name)
    assert rules.may("sysctl-read", "hw.ncpu")


def test_only_the_service_of_account_names_is_reached(rules: Rules) -> None:
    assert rules.may("mach-lookup", "com.apple.system.opendirectoryd.libinfo")
    for name in (
        *("com.apple.SecurityServer", "com.apple.securityd.xpc", "com.apple.pasteboard.1"),
        *("com.apple.coreservices.launchservicesd", "com.apple.tccd", "com.apple.trustd.agent"),
        *("com.apple.windowserver.active", "com.apple.cfprefsd.agent", "com.apple.lsd.mapdb"),
    ):
        assert not rules.may("mach-lookup", name)


def test_programs_run_from_the_system_and_the_mounts(rules: Rules) -> None:
    for path in ("/bin/bash", f"{WORK}/.venv/bin/python", f"{DATA}/tool", f"{TEMPORARY}/x"):
        assert rules.may("process-exec*", path)
        assert rules.may("file-map-executable", path)
    assert not rules.may("process-exec*", "/Users/me/bin/tool")


def test_the_egress_socket_is_the_only_network(rules: Rules) -> None:
    socket = Path("/private/var/vel/egress")
    open_to_it = rules_of(render_profile(SHOWN, TEMPORARY, socket))
    assert open_to_it.may("network-outbound", str(socket))
    for each in (rules, open_to_it):
        for other in ("localhost:80", "*:443", "/private/var/run/mDNSResponder", f"{socket}2"):
            assert not each.may("network-outbound", other)
        for operation in ("network-bind", "network-inbound"):
            assert not each.may(operation, str(socket))
    assert not rules.may("network-outbound", str(socket))


names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30
).filter(lambda name: name not in (".", ".."))
hostile = st.sampled_from(
    [
        *(
            '"',
            "\\",
            '\\"',
            '")) (allow file* (subpath "/',
            "\n(allow default)\n",
            "a\nb",
            ";x",
            "#",
        ),
        *('(param "TEMPORARY")', "$(id)", " ", "\t", "é", "\u202e", "%s", "SHOWN_0=/", "=", "-D"),
    ]
)


@pytest.mark.slow
@given(parts=st.lists(names | hostile, min_size=1, max_size=4), writable=st.booleans())
def test_no_name_changes_the_rules(parts: list[str], writable: bool) -> None:
    path = Path("/Users/me", *parts)
    plain = render_profile([ShownPath(WORK, writable)], TEMPORARY)
    profile = render_profile([ShownPath(path, writable)], TEMPORARY)
    assert profile.text == plain.text
    rules = rules_of(profile)
    for inside in (str(path), f"{path}/x"):
        assert rules.reads(inside)
        assert rules.writes(inside) is writable
    for outside in (f"{path}x", str(path)[:-1] + "\x01", "/Users/me/.ssh/id", "/private/etc/x"):
        assert not rules.reads(outside)
        assert not rules.writes(outside)
