"""The to-do list on the page of a run."""

from agents.doors.web.run_panels import RunPanel

RUN_PANELS = [
    RunPanel(
        template="vel_planning/run_panel.html",
        script="vel_planning/plan.js",
        style="vel_planning/plan.css",
    )
]
