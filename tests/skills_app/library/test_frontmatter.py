"""The YAML of the frontmatter: strings, lists and maps, with any content."""

from __future__ import annotations

import time

import frontmatter
import pytest

from skills_app.library.frontmatter import SkillHandler, read_skill
from skills_app.library.problems import InvalidSkill
from tests.support.packages import BODY


def read(head: str) -> dict[str, object]:
    return dict(read_skill(f"---\n{head}---\n{BODY}")[0])


def bomb() -> str:
    """Return 634 bytes that expand to nine billion."""
    lines = ["a0: &a0 [" + ", ".join(["lol"] * 9) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 10)]
    return "\n".join(lines) + "\n"


def test_every_value_is_text() -> None:
    head = "a: yes\nb: 1.0\nc: 2020-01-01\nd: null\ne: ~\nf: 0x10\ng:\nh: [on, 1]\ni: {k: off}\n"
    assert read(head) == {
        "a": "yes",
        "b": "1.0",
        "c": "2020-01-01",
        "d": "null",
        "e": "~",
        "f": "0x10",
        "g": "",
        "h": ["on", "1"],
        "i": {"k": "off"},
    }


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (bomb(), "anchors or aliases"),
        ("a: &x b\n", "anchors or aliases"),
        ("a: *x\n", "anchors or aliases"),
        ("<<: *x\n", "anchors or aliases"),
        ("a: !!python/object/apply:os.system [id]\n", "YAML tag"),
        ("a: !!str b\n", "YAML tag"),
        ("!x\na: b\n", "YAML tag"),
        ("a: b\na: c\n", "a more than once"),
        ("m:\n  a: b\n  a: c\n", "a more than once"),
        ("[a, b]: c\n", "field's name"),
        ("? {a: b}\n: c\n", "field's name"),
        ("- a\n- b\n", "YAML mapping"),
        ("just text\n", "YAML mapping"),
        ("a: [b\n", "invalid YAML"),
        ("a: b: c\n", "invalid YAML"),
        ("\ta: b\n", "invalid YAML"),
        ("a: b\x07\n", "invalid YAML"),
        ("a: b\n--- c\n", "more than one YAML document"),
        ("a: " + "[" * 5000 + "\n", "deeper than 16"),
        ("- " * 5000 + "a\n", "deeper than 16"),
        ("".join(f"k{n}: v\n" for n in range(1600)), "more than 1,500 values"),
        ("a: " + "x" * 20_000 + "\n", "longer than 16,384 bytes"),
        ("".join(f"k{n}: v\n" for n in range(10_000)), "longer than 16,384 bytes"),
    ],
)
def test_invalid_heads_are_refused_quickly(head: str, words: str) -> None:
    begun = time.process_time()
    with pytest.raises(InvalidSkill, match=words):
        read(head)
    assert time.process_time() - begun < 1


def test_dashes_inside_a_value_do_not_end_the_head() -> None:
    head = 'a: "x --- y"\nb: |\n  ---\n  z\nc: d\n'
    assert read(head) == {"a": "x --- y", "b": "---\nz\n", "c": "d"}


def test_the_body_stays_as_it_is() -> None:
    body = "\r\n\n  first\n---\nlast without an end"
    for begin, end in (("---\n", "---\n"), ("\ufeff---  \r\n", "--- \t\r\n")):
        assert read_skill(f"{begin}a: b\n{end}{body}")[1] == body
    assert read_skill("---\n---") == ({}, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Title\n", "must start with its YAML frontmatter"),
        ("", "must start"),
        (" ---\na: b\n---\n", "must start"),
        ("---\na: b\n", "not properly closed"),
        ("---\na: b ---\nbody\n", "not properly closed"),
    ],
)
def test_a_text_without_a_head_gets_a_message(text: str, words: str) -> None:
    with pytest.raises(InvalidSkill, match=words):
        read_skill(text)


def test_it_is_a_handler_of_python_frontmatter() -> None:
    post = frontmatter.loads("---\nname: a\non: yes\n---\n\nBody\n", handler=SkillHandler())
    assert (post.metadata, post.content) == ({"name": "a", "on": "yes"}, "Body")
