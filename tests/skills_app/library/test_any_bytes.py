"""Any bytes in a SKILL.md give a package or problems, quickly, and no other exception."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills_app.library.export import export_files
from skills_app.library.package import Package, PackageFile, errors_of
from skills_app.library.problems import Problem
from skills_app.library.read import read_package
from skills_app.library.strict import strict_problems

SECONDS = 1.0


def read(data: bytes, name: str | None = None) -> tuple[Package | None, list[Problem]]:
    begun = time.process_time()
    package, problems = read_package([PackageFile("SKILL.md", data)], name)
    assert time.process_time() - begun < SECONDS
    assert (package is None) == bool(errors_of(problems))
    for problem in problems:
        str(problem).encode()
    if package is not None:
        assert package.text.encode() == data
        assert package.text.endswith(package.body)
        strict_problems(package.text)
        (file,) = export_files(package, package.head)
        again, left = read_package([PackageFile("SKILL.md", file.data)], package.head.name)
        assert again is not None
        assert (again.body, left) == (package.body, [])
        assert again.head.description == package.head.description
    return package, problems


PIECES = st.sampled_from(
    [
        *(
            "---",
            "---\n",
            "name:",
            "description:",
            "metadata:",
            "allowed-tools:",
            "tags:",
            "a",
            "-",
        ),
        *(
            "vel-extra:",
            "enabled:",
            "priority:",
            "[",
            "]",
            "{",
            "}",
            "&",
            "*",
            "&a",
            "*a",
            "!",
            "?",
        ),
        *("!!python/object/apply:os.system", "!!str", "%", "@", "`", "|", ">", "|+", ">-", "'"),
        *('"', "\\", "<<", "<<:", "~", "null", "true", "1.0", "#", "(", ")", ",", "\t", "\r\n"),
        *("\ufeff", "\0", "\x85", "\u2028", "...", "%YAML", "😀", "é", "\\u0000"),
    ]
)
YAML = st.lists(PIECES | st.sampled_from([" ", "\n", "\n  ", ": "]), max_size=40).map("".join)
VALID = b"---\nname: a\ndescription: b\n"


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    read(data)


@given(st.binary(max_size=200), st.text(max_size=8))
def test_any_bytes_as_a_head(data: bytes, name: str) -> None:
    read(b"---\n" + data + b"\n---\nbody", name)


@pytest.mark.slow
@given(YAML)
@settings(max_examples=400)
def test_any_pieces_of_yaml(text: str) -> None:
    read(f"---\n{text}\n---\nbody".encode())
    read(VALID + text.encode() + b"\n---\nbody")


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("name", "description", "metadata", "allowed-tools", "tags", "requires"),
                *("priority", "vel-tags", "license", "enabled", "x"),
            ]
        ),
        st.recursive(
            st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
            max_leaves=6,
        ),
        max_size=6,
    )
)
@settings(max_examples=200)
def test_any_fields(fields: dict[str, object]) -> None:
    read(b"---\n" + json.dumps(fields, ensure_ascii=True).encode() + b"\n---\nbody")


@pytest.mark.slow
def test_heads_that_hang_careless_readers() -> None:
    size = 16_000
    heads = [
        "[" * size,
        "{" * size,
        "- " * (size // 2),
        "? " * (size // 2),
        "a: " * (size // 3),
        "".join(f"k{n}: v\n" for n in range(1_450)),
        "metadata:\n" + "".join(f" k{n}: v\n" for n in range(1_400)),
        "tags:\n" + "- a\n" * 3_900,
        "description: " + "x" * size,
        "description: " + "word " * (size // 5),
        'description: "' + "\\\\" * (size // 2 - 10) + '"',
        "description: |\n" + "  x\n" * (size // 4 - 10),
        "description: >\n" + "\n" * size,
        "allowed-tools: " + "(" * size,
        "allowed-tools: " + "a," * (size // 2 - 10),
        "name: " + "ﷺ" * 5_000,
        "name: " + "a\u0301" * 5_000,
        "#" * size,
        " " * size,
        "\n" * size,
        "'" * size,
        "vel: " + "!" * size,
        "metadata:\n  vel-tags: '" + "[" * (size - 100) + "'",
        "a: &a [" + "*a, " * 4_000 + "]",
    ]
    for head in heads:
        for text in (f"---\n{head}\n---\nbody", f"---\nname: a\ndescription: b\n{head}\n---\nbody"):
            read(text.encode())
    read(b"---\n" * 120_000)
    read(b"---\n" + b"-" * 499_000)
    read(b"---\nname: a\ndescription: b\n---\n" + b"--- \n" * 90_000)
