"""Accepted requirements for pip: no options, and no code that runs here without permission."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.toolboxes.build import check_requirement, read_requirements
from sandbox.toolboxes.toolbox import ToolboxError, check_name
from tests.support.wheels import make_wheel

HOSTILE = [
    "--index-url=http://evil.example/simple",
    "-r/etc/passwd",
    "-e.",
    "--target=/etc",
    " --pre",
    "",
    "  ",
    "pandas --index-url http://evil.example",
    "pandas\n--index-url http://evil.example",
    "git+https://evil.example/x.git",
    "https://evil.example/x-1.0.tar.gz",
    "https://evil.example/x-1.0-py3-none-any.whl",
    "pandas @ https://evil.example/x.whl",
    "file:///tmp/x.whl",
    "./here",
    "../there.whl",
    "/etc",
    "pandas; touch /tmp/x #",
    "$(touch x)",
    "pandas`id`",
    "pandas\x1b[2J",
    "pandas\u202e",
    "${HOME}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_only_names_with_versions_are_accepted(text: str) -> None:
    with pytest.raises(ToolboxError):
        check_requirement(text)


@pytest.mark.parametrize(
    "text",
    [
        "pandas",
        "zope.interface",
        "pandas>=2,<4",
        "pandas == 3.1.*",
        "pandas[excel, plot]>=2",
        "numpy~=2.0",
        'tomli>=2; python_version < "3.11"',
        "torch==2.4.0+cpu",
    ],
)
def test_common_forms_of_requirements_are_accepted(text: str) -> None:
    assert check_requirement(text) == text


def test_a_wheel_on_this_host_is_accepted_and_a_missing_one_is_not(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    assert check_requirement(str(wheel)) == str(wheel)
    with pytest.raises(ToolboxError):
        check_requirement(str(tmp_path / "other-1.0-py3-none-any.whl"))


def test_source_builds_need_the_operators_option() -> None:
    url = "git+https://example.org/x.git"
    with pytest.raises(ToolboxError, match="--allow-source"):
        check_requirement(url)
    assert check_requirement(url, allow_source=True) == url
    with pytest.raises(ToolboxError, match="is an option"):
        check_requirement("--no-deps", allow_source=True)


def test_a_file_keeps_its_hashes_and_loses_its_comments(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "# what we need\npandas>=2  # frames\n\nnumpy==2.0 \\\n  --hash=sha256:aa \\\n"
        "  --hash=sha256:bb\n"
    )
    assert read_requirements(file) == ["pandas>=2", "numpy==2.0 --hash=sha256:aa --hash=sha256:bb"]


@pytest.mark.parametrize(
    "line",
    [
        "--index-url http://evil.example/simple",
        "--extra-index-url=http://evil.example",
        "-i http://evil.example",
        "--no-binary :all:",
        "--find-links http://evil.example",
        "-r other.txt",
        "-e .",
        "pandas --config-settings=x",
        "pandas \\\n--index-url http://evil.example",
        "--trusted-host evil.example",
    ],
)
def test_a_file_cannot_contain_an_option(tmp_path: Path, line: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"numpy\n{line}\n")
    with pytest.raises(ToolboxError):
        read_requirements(file)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "-x", "x-", "A", "a b", "x\n", "ä", ".lock", "a" * 65]
)
def test_a_name_is_a_slug(name: str) -> None:
    with pytest.raises(ToolboxError):
        check_name(name)
