"""Change agents: their options, files, templates, subagents and policies."""
