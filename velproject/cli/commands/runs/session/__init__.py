"""The interactive session of `vel`: its prompt, its slash commands and its output.

Only `vel` without a task imports these modules: their libraries would slow down each start.
"""
