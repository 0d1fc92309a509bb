"""YAML of agent files: reading, line numbers of errors, and round trips."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.agent_files.reading import MAX_BYTES, BadFile, read_document
from agents.agent_files.shape import default_of, file_fields
from agents.agent_files.writing import write_document
from agents.features.subagents.models import Subagent
from agents.models import Agent
from agents.spec import SubagentSpec

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
tricky = st.sampled_from(
    ["no", "1.0", "~", "", "a: b", "- x", " x\n y", "\x85", "\u2028a\n", "\ta"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | texts
    | tricky
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | tricky, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(texts | tricky, values, max_size=5))
def test_a_written_file_reads_back_and_writes_the_same_bytes(data):
    text = write_document(data)

    read = read_document(text).data

    assert json.dumps(read) == json.dumps(data)
    assert write_document(read) == text


def test_hidden_characters_are_written_as_escapes():
    assert write_document({"a": "x\u202ey"}) == 'a: "x\\u202Ey"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: &x [1]\nc: *x", 2, "anchors"),
        ("a: !!python/object/apply:os.system ['id']", 1, "tags"),
        ("a: !own 1", 1, "tags"),
        ("a: 1\nb: 2\na: 3", 3, "twice"),
        ("- a", 1, "mapping"),
        ("", 1, "mapping"),
        ("a: 1\n---\nb: 1", 2, "another document"),
        ("a:\n  - " + "[" * 60, 2, "deeper"),
        ("a: .inf", 1, "number"),
        ("a: " + "9" * 5_000, 1, "too long"),
        ("a: 1\n? [b]\n: 1", 2, "name of a field"),
        ('a: "\\ud800"', 1, "half of a character"),
        ('a: "\\0"', 1, "NUL"),
        ("a: 1\nb: c: d", 2, "not allowed here"),
        ("a: " + "x" * MAX_BYTES, 1, "larger than"),
    ],
)
def test_a_refusal_names_the_line(text, line, said):
    with pytest.raises(BadFile) as error:
        read_document(text)

    problem = error.value.problems[0]
    assert (problem.line, said in problem.message) == (line, True), problem


def test_a_bomb_of_aliases_and_many_values_cost_no_time():
    bomb = "a: &a [x,x]\n" + "\n".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]" for n in range(20)
    )
    many = "a: [" + "1," * 100_000 + "]"
    began = time.process_time()
    for text in (bomb, many):
        with pytest.raises(BadFile):
            read_document(text)

    assert time.process_time() - began < 5


def test_a_file_has_every_field_of_an_agent_with_its_default():
    """Add each new field of an agent to the file, or list it here as an exception."""
    not_part = {"id", "owner", "version", "created_at", "updated_at", "toolkit", "definition"}
    columns = {field.name for field in Agent._meta.concrete_fields} - not_part
    related = {field.name for field in Agent._meta.many_to_many} | {"subagents", "databases"}
    assert columns | related <= file_fields().keys()
    for name in file_fields().keys() - related - {"name", "slug"}:
        assert default_of(name) == getattr(Agent(), name), name

    own = {field.name for field in Subagent._meta.concrete_fields} - {"id", "agent"}
    assert set(SubagentSpec.model_fields) == own
    for name, field in SubagentSpec.model_fields.items():
        if not field.is_required():
            default = Subagent._meta.get_field(name).get_default()
            assert field.default == (tuple(default) if isinstance(default, list) else default), name
