"""The to-do list on the page of a run, and the form of its tool."""

from django.utils.translation import gettext_lazy as _

from agents.doors.web.run_panels import RunPanel
from agents.doors.web.tool_forms import ToolForm
from agents.features.planning.todo_list import WRITE

RUN_PANELS = [
    RunPanel(
        template="vel_planning/run_panel.html",
        script="vel_planning/plan.js",
        style="vel_planning/plan.css",
    )
]

TOOL_FORMS = [
    ToolForm(
        WRITE,
        "vel_planning",
        words=(_("updated the plan"), _("updated the plan # times")),
        script="vel_planning/todos_form.js",
    )
]
