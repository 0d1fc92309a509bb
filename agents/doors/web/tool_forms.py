"""How the page of a run shows the calls of each tool (`pages.TOOL_FORMS`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents.kernel.features import collect


@dataclass(frozen=True, slots=True)
class ToolForm:
    """The form of a tool's inputs and outputs. Tools without one are shown as fields and JSON."""

    tool: str
    """The name of the tool."""
    form: str = ""
    """One of the forms in `static/agents/web/tool_forms`: `terminal`, `file` or `table`; or a form
    of `script`. Empty: fields and JSON."""
    code: str = ""
    """The field of the input with code, and its language: `command bash`."""
    words: tuple[str | Promise, str | Promise] = ("", "")
    """What the agent did in one call, and in several: ("read a file", "read # files"). Empty:
    `called` and the name of the tool."""
    script: str = ""
    """The path of a static JavaScript module that adds the form with `addForm`."""


_BUILT_IN = (
    ToolForm("read_file", "file", words=(_("read a file"), _("read # files"))),
    ToolForm("ls", words=(_("listed a directory"), _("listed # directories"))),
    ToolForm("glob", words=(_("searched for files"), _("searched for files # times"))),
    ToolForm("grep", words=(_("searched in files"), _("searched in files # times"))),
    ToolForm("write_file", words=(_("wrote a file"), _("wrote # files"))),
    ToolForm("edit_file", words=(_("made an edit"), _("made # edits"))),
    ToolForm("execute", "terminal", "command bash", (_("ran a command"), _("ran # commands"))),
    ToolForm(
        "execute_in_sandbox", "terminal", "command bash", (_("ran a command"), _("ran # commands"))
    ),
    ToolForm(
        "execute_python", "terminal", "code python", (_("ran a program"), _("ran # programs"))
    ),
)


def tool_forms() -> list[ToolForm]:
    """Return the forms of Vel and of the installed features."""
    return [*_BUILT_IN, *(form for _, form in collect("pages", "TOOL_FORMS", skip_broken=True))]


def forms_for_page(forms: list[ToolForm]) -> dict[str, Any]:
    """Return what the scripts of the page need, by tool."""
    return {
        each.tool: {
            "form": each.form,
            "code": each.code.split(),
            "words": [str(words) for words in each.words],
        }
        for each in forms
    }
