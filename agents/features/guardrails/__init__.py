"""What keeps a run from going wrong: runs that repeat themselves are noticed, and calls that failed
for a moment are made again.

It plugs in three middleware: `stuck`, `model_retries` and `tool_retries`.
"""
