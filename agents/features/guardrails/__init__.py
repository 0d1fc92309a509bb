"""What keeps a run from going wrong, for operators, programs and owners of agents.

Guardrails check messages, replies, calls and results. Lifecycle hooks are notified of what a run
does. Runs that repeat themselves are noticed, and calls that failed for a moment are made again.

It plugs in five middleware: `guardrails`, `lifecycle`, `stuck`, `model_retries` and `tool_retries`.
"""
