"""How the page of a run shows calls of the database tools."""

from django.utils.translation import gettext_lazy as _

from agents.doors.web.tool_forms import ToolForm

TOOL_FORMS = [
    ToolForm("execute_sql", "table", "query sql", (_("ran a query"), _("ran # queries"))),
    ToolForm("describe_table", "table", words=(_("looked at a table"), _("looked at # tables"))),
    ToolForm("get_schema", words=(_("read the schema"), _("read the schema # times"))),
    ToolForm("list_tables", words=(_("listed the tables"), _("listed the tables # times"))),
]
