"""An agent's paths stay inside and become canonical, and errors name the correct path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import paths
from sandbox.errors import PathRefused

names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)
parts = st.one_of(names, st.sampled_from(["..", ".", "", "sandbox", "skills", "workspace", "~"]))
any_path = st.builds(
    lambda absolute, pieces: ("/" if absolute else "") + "/".join(pieces),
    st.booleans(),
    st.lists(parts, max_size=12),
)
wild = st.text(max_size=60)


@given(any_path | wild, st.sampled_from(["/", "/sandbox/workspace"]))
def test_normalising_stays_below_the_root_and_is_idempotent(path: str, cwd: str) -> None:
    try:
        result = paths.normalise(path, cwd)
    except PathRefused:
        return
    assert result.startswith("/")
    assert "\0" not in result
    assert result == "/" or all(part not in ("", ".", "..") for part in result[1:].split("/"))
    assert paths.normalise(result, cwd) == result


@given(any_path | wild)
def test_the_agents_view_never_leaves_its_areas(path: str) -> None:
    try:
        result = paths.resolve_workspace_path(path)
    except PathRefused:
        return
    areas = [f"/sandbox/{area}" for area in paths.AREAS]
    assert result == "/sandbox" or any(paths.is_within(result, area) for area in areas)
    assert paths.resolve_workspace_path(result) == result


@given(st.lists(names.filter(lambda name: name not in (".", "..")), min_size=1, max_size=6))
def test_every_name_survives(pieces: list[str]) -> None:
    path = "/x/" + "/".join(pieces)

    assert paths.normalise(path) == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("notes.md", "/sandbox/workspace/notes.md"),
        ("", "/sandbox/workspace"),
        (".", "/sandbox/workspace"),
        ("../outputs/report.md", "/sandbox/outputs/report.md"),
        ("/", "/sandbox"),
        ("/sandbox/", "/sandbox"),
        ("/sandbox//shared/./x", "/sandbox/shared/x"),
        ("/skills", "/sandbox/skills"),
        ("/skills/pdf/SKILL.md", "/sandbox/skills/pdf/SKILL.md"),
        ("/sandbox/workspace/a/../b", "/sandbox/workspace/b"),
        ("two\nlines", "/sandbox/workspace/two\nlines"),
        ("~backup", "/sandbox/workspace/~backup"),
    ],
)
def test_paths_in_the_agents_view(path: str, expected: str) -> None:
    assert paths.resolve_workspace_path(path) == expected


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/etc/passwd", "'/sandbox/workspace/etc/passwd'"),
        ("/tmp/x", "'/sandbox/workspace/tmp/x'"),
        ("/reports/2024/q4.md", "'/sandbox/workspace/reports/2024/q4.md'"),
        ("/sandbox/a/b.md", "'/sandbox/workspace/a/b.md'"),
        ("/outputs/report.md", "'/sandbox/outputs/report.md'"),
        ("/workspace/a/b", "'/sandbox/workspace/a/b'"),
        ("/sandbox/report.md", "'/sandbox/workspace/report.md'"),
        ("/sandboxed/x", "'/sandbox/workspace/sandboxed/x'"),
        ("../../etc/passwd", "'/sandbox/workspace/etc/passwd'"),
        ("/skills/../etc/passwd", "'/sandbox/workspace/etc/passwd'"),
        ("../../../etc/passwd", "without it"),
        ("~/notes", "without `~/`"),
        ("a\0b", "NUL"),
        ("x" * 256, "255 bytes"),
        ("x/" * 3000, "4095 bytes"),
        ("\ud800", "valid UTF-8"),
    ],
)
def test_a_path_outside_is_refused_with_the_correct_path(path: str, advice: str) -> None:
    with pytest.raises(PathRefused) as refused:
        paths.resolve_workspace_path(path)

    assert advice in str(refused.value)
    str(refused.value).encode()


def test_a_path_of_the_host_is_refused_with_the_path_of_that_file() -> None:
    directories = {"workspace": "/home/ada/project", "outputs": "/data/threads/1/outputs"}
    for path, advice in [
        ("/home/ada/project/sub/a.md", "'/sandbox/workspace/sub/a.md'"),
        ("/home/ada/project", "'/sandbox/workspace'"),
        ("/data/threads/1/outputs/x", "'/sandbox/outputs/x'"),
        ("/home/ada/projects/a.md", "'/sandbox/workspace/home/ada/projects/a.md'"),
    ]:
        with pytest.raises(PathRefused) as refused:
            paths.resolve_workspace_path(path, directories)
        assert f"Use {advice}" in str(refused.value)
