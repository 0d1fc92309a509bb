"""reporting: the findings of the check, and HTML with only the content of the report."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser

import pytest

from tests.skills_app.builtin.desk import Desk

pytestmark = pytest.mark.bubblewrap

CHECK, RENDER = "reporting/check_report.py", "reporting/render_html.py"
TYPES = ("executive-summary", "analysis", "status", "technical")
VOID = {"meta", "img", "br", "hr"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "nav", "h1", "h2", "h3", "h4", "h5", "h6",
    "p",
    "a", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead",
    "tbody", "tr", "th", "td", "img", "hr", "br",
}  # fmt: skip


class Page(HTMLParser):
    """The tags, attributes and text of a page, and whether every tag is closed correctly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def render(desk: Desk, report: str, *arguments: str) -> tuple[Page, str]:
    path = desk.upload("report.md", report)
    done = desk.script(RENDER, path, "--output", "/sandbox/outputs/r.html", *arguments)
    assert done.exit_code == 0, done.stderr
    page = Page(desk.output("r.html"))
    assert {tag for tag, _ in page.tags} <= ALLOWED
    return page, done.stderr


def check(desk: Desk, report: str, *arguments: str) -> list[str]:
    result = desk.script(CHECK, desk.upload("report.md", report), *arguments, "--json")
    assert result.exit_code in (0, 1), result.stderr
    problems: list[str] = json.loads(result.stdout)["problems"]
    assert (result.exit_code == 1) == bool(problems)
    return problems


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", TYPES)
def test_a_template_passes_when_it_is_filled_in_and_not_before(desk: Desk, kind: str) -> None:
    template = desk.run(f"cat /sandbox/skills/reporting/assets/{kind}.md").stdout
    problems = check(desk, template, "--type", kind)
    assert len([each for each in problems if "placeholder" in each]) == template.count("{{")
    filled = re.sub(r"\{\{YYYY-MM-DD\}\}", "2024-05-01", template)
    filled = re.sub(r"\{\{.*?\}\}", "Words", filled)
    assert check(desk, filled, "--type", kind) == []
    page, _ = render(desk, filled, "--contents")
    assert page.count("h1") == 1
    assert page.count("nav") == 1


REPORT = "# Sales rose\n\n**Date:** 2024-05-01\n\n## Findings\n\nSee [them](#findings).\n"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (REPORT.replace("**Date:** 2024-05-01\n\n", ""), "There is no date"),
        (REPORT.replace("2024-05-01", "soon"), "is not a date"),
        (REPORT.replace("# Sales", "Sales"), "must start with a title"),
        (REPORT + "\n## Empty\n", "'Empty' is empty"),
        (REPORT + "\nTODO: more\n", "line 9: a placeholder"),
        (REPORT + "\n[x](missing.csv)\n", "missing.csv does not exist"),
        (REPORT + "\n![x](missing.svg)\n", "missing.svg does not exist"),
        (REPORT + "\n![x](https://example.com/a.png)\n", "must be a local file"),
        (REPORT + "\n[x](#nowhere)\n", "#nowhere is not a section"),
    ],
)
def test_problems_for_readers_are_found(desk: Desk, report: str, words: str) -> None:
    found = check(desk, report)
    assert len(found) == 1
    assert words in found[0]


def test_correct_reports_have_no_problems(desk: Desk) -> None:
    desk.upload("data.csv", "a\n1\n")
    fine = "\n[d](data.csv) [w](https://example.com) `{{code}}`\n\n```\nTODO [x](gone)\n```\n"
    assert check(desk, REPORT + fine) == []
    missing = check(desk, REPORT, "--type", "status")
    assert [each for each in missing if "'Risks' is missing" in each]
    long = REPORT + "word " * 600
    assert any("one page" in each for each in check(desk, long, "--type", "executive-summary"))


HOSTILE = """\
# A <script>alert(1)</script> & "title"

<img src=x onerror=alert(1)> <iframe src="https://evil.example"></iframe>

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](vbscript:x)
[e](https://x.example/"onmouseover="alert(1)) [f](//evil.example/x) [g](file:///etc/passwd)
![h](javascript:alert(1)) ![i](https://evil.example/pixel.png) ![j" onerror="alert(1)](pic.svg)
![k](../../../etc/passwd) <javascript:alert(1)>

`<b>` **<b>bold</b>** \ue000999\ue001 `\ue0000\ue001` [x](https://ok.example/?a=1&b=2)

| <td onclick=x> | b |
| --- | ---: |
| </table><script> | ![l](pic.svg) |

```html" onload="x
</code></pre><script>alert(2)</script>
```

> <style>body{display:none}</style>

- </li></ul><script>
  1. </ol>
"""


def test_nothing_in_a_report_becomes_a_program(desk: Desk) -> None:
    desk.upload("pic.svg", "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    page, said = render(desk, HOSTILE, "--title", "</title><script>")
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert set(attributes) <= {
            "href", "rel", "src", "alt", "id", "class", "start", "lang", "charset", "name",
            "content", "http-equiv",
        }  # fmt: skip
        assert re.match(r"https?://|mailto:|#|$", attributes.get("href") or "")
        assert re.match(r"data:image/|$", attributes.get("src") or ""), "nothing is loaded"
    assert page.count("img") == 2
    assert page.count("style") == page.count("title") == 1
    for words in ("<script>alert(1)</script>", "<iframe", "<td onclick=x>", "onerror=alert(1)"):
        assert words in page.text, "it is shown as text"
    policy = next(given["content"] for _, given in page.tags if "http-equiv" in given)
    assert (policy or "").startswith("default-src 'none'")
    assert "evil.example/pixel.png is not a local file" in said


def test_markdown_as_people_write_it(desk: Desk) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    desk.upload("chart.png", picture)
    page, _ = render(
        desk,
        "# Title\n\nOne *two* **three** ~~four~~ snake_case_word 2 * 3 * 4\nsame paragraph  \n"
        "broken\n\n"
        "- a\n- b\n  - c\n\n    more\n- [x] done\n\n3. x\n4. y\n\n![Rain](chart.png)\n\n---\n\n"
        "> quoted\n> twice\n\n## Title\n\n    indented\n\n<https://example.com/a_b_c>\n",
        "--language", "de",
    )  # fmt: skip
    assert (page.count("em"), page.count("strong"), page.count("del")) == (1, 1, 1)
    assert (page.count("ul"), page.count("ol"), page.count("li"), page.count("br")) == (2, 1, 6, 1)
    assert "snake_case_word 2 * 3 * 4" in page.text
    assert "☑ done" in page.text
    attributes = [given for _, given in page.tags]
    assert {"start": "3"} in attributes
    assert attributes[0] == {"lang": "de"}
    source = next(given["src"] for given in attributes if "src" in given) or ""
    assert base64.b64decode(source.partition(",")[2]) == picture
    ids = [given["id"] for given in attributes if "id" in given]
    assert ids == ["title", "title-2"]
    assert "https://example.com/a_b_c" in page.text


def test_deep_nesting_and_long_lines_are_handled(desk: Desk) -> None:
    long = ("> ", "- ", "*a", "**a", "[", "[a](", "`", "``` ", "![](", "_a ", "<", "|", "~~a")
    render(desk, "# T\n\n" + "\n\n".join(each * 5_000 for each in long))


def test_a_binary_report_is_refused(desk: Desk) -> None:
    path = desk.upload("r.md", b"\xff\xfe\x00bad")
    assert desk.script(CHECK, path).exit_code == 3
    assert desk.script(RENDER, path, "--output", "/sandbox/outputs/x.html").exit_code == 3
    fine = desk.upload("f.md", "# T\n")
    assert desk.script(RENDER, fine, "--output", fine).exit_code == 2
    bad = desk.script(RENDER, fine, "--output", "/sandbox/outputs/x.html", "--language", '"><x')
    assert bad.exit_code == 2
