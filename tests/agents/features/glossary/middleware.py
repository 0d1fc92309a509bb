import json
from dataclasses import replace

from pydantic import BaseModel
from vel_glossary.events import WordMissed
from vel_glossary.models import Term
from vel_glossary.options import GlossaryOptions

from agents.middleware.base import Middleware, Tool, ToolResult, error
from agents.models import Effect


class LookUpInput(BaseModel):
    word: str


def look_up_tool(length):
    async def look_up(context, given):
        term = await context.in_database(Term.objects.filter(word=given.word).first)
        if term is None:
            return error(f"The glossary does not contain {given.word!r}.")
        return ToolResult(term.meaning[:length])

    description = "Look up what a word means in this team."
    return Tool("look_up_word", description, LookUpInput, look_up, Effect.READ)


class GlossaryMiddleware(Middleware):
    name = "glossary"

    def tools(self, spec):
        options = spec.option(GlossaryOptions)
        return [look_up_tool(options.glossary_length)] if options.glossary else []

    def every_tool(self):
        return [look_up_tool(200)]

    def prompt(self, context):
        if "look_up_word" not in context.tool_names:
            return ""
        return "## Glossary\nLook up words of the team before you use them."

    async def wrap_tool_call(self, run, call, handler):
        result = await handler(call)
        if call.row.tool == "look_up_word" and result.is_error:
            word = json.loads(call.row.edited_input or call.row.input).get("word", "")
            result = replace(result, events=[*result.events, WordMissed(word=word)])
        return result


MIDDLEWARE = [GlossaryMiddleware()]
