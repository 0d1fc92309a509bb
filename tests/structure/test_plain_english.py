from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure import plain_english

PLAIN = """
The run continues when a person approves the request. Only the owner can edit memory.
What happens after a crash? A command reads `what it is told`, see [the page](what/is/told.md).

```console
$ echo "Nobody is told what goes on"
```
"""


def lines(path: Path, text: str) -> list[str]:
    """Return the line number of each habit in a file with this text."""
    path.write_text(text)
    return [line.split(":")[1] for line in plain_english.read(path).lines()]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The page shows what\nwaits.", "shows what"),
        ("The model is told about it.", "is told"),
        ("Memory is changed by nobody else.", "nobody"),
        ("The run goes on after a crash.", "goes on"),
        ("A call that a rule that the owner wrote and that applies denies.", "that a rule that"),
    ],
)
def test_each_habit_is_found(tmp_path: Path, sentence: str, words: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(sentence)

    (line,) = plain_english.read(page).lines()

    assert line.startswith(f"{page}:1: '{words}")


def test_plain_text_code_and_addresses_have_no_habits(tmp_path: Path) -> None:
    assert lines(tmp_path / "page.md", PLAIN) == []


def test_comments_docstrings_and_messages_are_text_with_their_line(tmp_path: Path) -> None:
    source = '''"""What a module has.

Nobody reads it.

What a reader wants.
"""

begins = tells["nobody"]  # The run begins here.
raise ValueError(
    f"The caller {begins} of this page sees "
    f"what they expect of it."
)
call("what", "of it", "What the owner has said")  # Said.
'''

    numbers = ["1", "3", "5", "8", "10", "13", "13", "13"]
    assert lines(tmp_path / "module.py", source) == numbers


def test_tags_and_scripts_of_templates_are_code(tmp_path: Path) -> None:
    page = """<p title="nobody">{% if told %}Saved.{% endif %}
<script>
const text = "nobody said";
</script>
<p>{{ said }} The agent is told.</p>
"""

    assert lines(tmp_path / "page.html", page) == ["5"]


def test_translated_texts_of_templates_are_read(tmp_path: Path) -> None:
    page = """{% translate "The run goes on." %}
{% translate 'Nobody is told.' context "said" as text %}
{% blocktranslate trimmed with name=said %}{{ name }} is told.{% endblocktranslate %}
"""

    assert lines(tmp_path / "page.html", page) == ["1", "2", "2", "3"]


def test_a_group_above_its_limit_is_reported_with_its_densest_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "agents/migrations", "agents/templates"):
        Path(folder).mkdir(parents=True)
    plain = "The agent reads the file. " * 50
    Path("README.md").write_text(plain)
    Path("docs/plain.md").write_text(plain)
    Path("docs/dense.md").write_text("The run goes on. " * 50)
    Path("agents/migrations/0001_initial.py").write_text("# The run goes on.\n" * 50)
    Path("agents/templates/page.html").write_text("The run goes on. " * 50)

    report = list(plain_english.check())

    place = "docs/dense.md:1: 'goes on': use a common word, as in `continues`, `starts`, `again`"
    assert report[0] == "docs: 111.1 habits in 1,000 words, at most 4"
    assert report[1:6] == [f"  {place}"] * plain_english.LINES_SHOWN
    assert report[6] == "templates: 250.0 habits in 1,000 words, at most 4"
    assert len(report) == 12


def test_a_project_in_plain_english_has_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text(PLAIN)

    assert list(plain_english.check()) == []
