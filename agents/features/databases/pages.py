"""How the page of a run shows calls of the database tools."""

from agents.doors.web.tool_forms import ToolForm

TOOL_FORMS = [
    ToolForm("execute_sql", "table", "query sql", ("ran a query", "ran # queries")),
    ToolForm("describe_table", "table", words=("looked at a table", "looked at # tables")),
    ToolForm("get_schema", words=("read the schema", "read the schema # times")),
    ToolForm("list_tables", words=("listed the tables", "listed the tables # times")),
]
