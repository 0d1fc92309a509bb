"""The image: its Dockerfile, its build context, its packages, and its filter of system calls."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from types import ModuleType

import pytest

from tests.docs_tools.blocks import ROOT

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
PROJECT = (ROOT / "pyproject.toml").read_text()
LOCK = (ROOT / "requirements/dev.txt").read_text()
EXTRAS = sorted(set(tomllib.loads(PROJECT)["project"]["optional-dependencies"]) - {"dev"})
PROFILE = json.loads((ROOT / "deploy/seccomp.json").read_text())


def extras_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("extras", ROOT / "deploy/extras.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_image_runs_as_an_account_that_kubernetes_can_check() -> None:
    *_, last_stage = DOCKERFILE.split("\nFROM ")
    assert "\nUSER 10001:10001\n" in last_stage
    assert "-perm /6000 -exec chmod a-s" in last_stage


def test_the_base_has_no_default_and_needs_a_digest() -> None:
    assert set(re.findall(r"^ARG BASE.*$", DOCKERFILE, re.MULTILINE)) == {"ARG BASE"}
    check = re.search(r"^RUN (case \"\$BASE\" in .*?esac)$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert check is not None

    def accepted(base: str) -> bool:
        shell = subprocess.run(["sh", "-c", check[1]], env={"BASE": base}, capture_output=True)
        return shell.returncode == 0

    assert accepted("debian@sha256:" + "0" * 64)
    assert accepted("localhost/debian")
    assert not accepted("debian:bookworm-slim")


def test_the_build_context_has_each_package_and_no_other_folder() -> None:
    lines = (ROOT / ".dockerignore").read_text().split("\n")
    allowed = {line[1:] for line in lines if line.startswith("!")}
    built = tomllib.loads(PROJECT)["tool"]["hatch"]["build"]["targets"]["wheel"]
    packages = {*built["packages"], *built["force-include"]}
    assert packages <= allowed
    assert allowed - packages == {
        *("LICENSE", "README.md", "pyproject.toml", "requirements/run.txt"),
        *("requirements/dev.txt", "deploy/extras.py"),
    }
    assert all((ROOT / path).exists() for path in allowed)


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_packages_of_an_extra_are_pinned_with_hashes(extra: str) -> None:
    extras = extras_module()
    if extra == "deepagents":
        with pytest.raises(ValueError, match="does not pin deepagents"):
            extras.pinned(extras.requirements_of([extra], PROJECT), LOCK)
        return
    blocks = extras.pinned(extras.requirements_of([extra], PROJECT), LOCK)
    assert blocks
    for block in blocks:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", block), block
        assert "--hash=sha256:" in block


def test_an_extra_has_the_packages_that_its_packages_need() -> None:
    extras = extras_module()
    blocks = extras.pinned(extras.requirements_of(["s3", "redis"], PROJECT), LOCK)
    names = {block.split("==")[0] for block in blocks}
    assert {"django-storages", "boto3", "botocore", "urllib3", "channels-redis", "redis"} <= names
    assert not names & {"moto", "pytest", "ruff"}


@pytest.mark.parametrize("extra", ["nix", "dev"])
def test_an_extra_that_does_not_exist_is_named(extra: str) -> None:
    done = subprocess.run(
        [sys.executable, "deploy/extras.py", f"mcp,{extra}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"EXTRAS: Vel has no extra '{extra}'. It has: ")
    assert done.stdout == ""


def test_the_profile_refuses_each_call_that_it_does_not_list() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in PROFILE["syscalls"]} == {"SCMP_ACT_ALLOW"}
    listed = {name for rule in PROFILE["syscalls"] for name in rule["names"]}
    # What the sandbox needs and the default profiles refuse.
    assert {"clone", "unshare", "mount", "umount2", "pivot_root", "sethostname"} <= listed
    refused = {
        *("ptrace", "process_vm_readv", "process_vm_writev", "bpf", "perf_event_open"),
        *("io_uring_setup", "userfaultfd", "keyctl", "add_key", "request_key", "setns"),
        *("fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr"),
        *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
        *("reboot", "swapon", "swapoff", "syslog", "settimeofday", "clock_settime", "acct"),
        *("open_by_handle_at", "name_to_handle_at", "quotactl", "fanotify_init", "iopl", "ioperm"),
    }
    assert not refused & listed


def test_the_profile_allows_only_known_families_of_sockets() -> None:
    rules = [rule for rule in PROFILE["syscalls"] if "socket" in rule["names"]]
    unix, internet, internet_6, netlink = 1, 2, 10, 16
    assert [rule["args"][0]["value"] for rule in rules] == [unix, internet, internet_6, netlink]
    assert all(rule["args"][0]["op"] == "SCMP_CMP_EQ" for rule in rules)


TOOLS = ("mmdebstrap", "buildah", "podman", "runc")


# Without the marker root: `make test-root` is no place for five minutes and packages of Debian.
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, TOOLS)),
    reason=f"needs root, {', '.join(TOOLS)}",
)
def test_a_container_runs_commands_with_the_flags_and_refuses_them_without() -> None:
    # Podman refuses a long path, such as one of the fixture tmp_path.
    with tempfile.TemporaryDirectory(prefix="vel-") as directory:
        try:
            build_and_run(directory)
        finally:
            stored = stored_in(directory)
            subprocess.run(["podman", *stored, "rm", "--all", "--force"], capture_output=True)
            subprocess.run(["buildah", *stored[:4], "rmi", "--all", "--force"], capture_output=True)
            # The storage mounts its own directory.
            subprocess.run(["umount", f"{directory}/root/overlay"], capture_output=True)


def stored_in(directory: str) -> list[str]:
    """Return the options with which podman changes nothing outside of `directory`."""
    places = {"root": "root", "runroot": "run", "tmpdir": "tmp", "network-config-dir": "net"}
    return [part for name, at in places.items() for part in (f"--{name}", f"{directory}/{at}")]


def build_and_run(directory: str) -> None:
    """Build the image from a new Debian, and run `vel doctor` with and without the flags."""
    stored = stored_in(directory)

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    def sandbox(*flags: str) -> str:
        """Return the level of the doctor's finding about the sandbox."""
        command = ["podman", *stored, "--runtime", "runc", "--cgroup-manager", "cgroupfs", "run"]
        command += ["--rm", "--network", "none", "--ulimit", "nofile=4096:4096"]
        command += ["--ulimit", "nproc=4096:4096", *flags, "localhost/vel", "doctor", "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        levels = [each["level"] for each in findings if each["subject"] == "sandbox"]
        assert len(levels) == 1, done.stdout + done.stderr
        return str(levels[0])

    run(
        "mmdebstrap",
        "--variant=minbase",
        "--include=ca-certificates",
        "bookworm",
        f"{directory}/base.tar",
    )
    run("podman", *stored, "import", f"{directory}/base.tar", "localhost/debian")
    build = ["buildah", *stored[:4], "bud", "--isolation", "chroot", "--network", "host"]
    build += ["-v", "/etc/ssl/certs:/etc/ssl/certs:ro", "--build-arg", "BASE=localhost/debian"]
    run(*build, "-f", "deploy/Dockerfile", "-t", "localhost/vel", ".")
    least = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"]
    filtered = ["--security-opt", "seccomp=deploy/seccomp.json"]
    unmasked = ["--security-opt", "unmask=/proc/*"]
    assert sandbox(*least, "--tmpfs", "/tmp", *filtered, *unmasked) == "ok"
    assert sandbox() == "broken"
    assert sandbox(*filtered) == "broken"
    assert sandbox(*unmasked) == "broken"
