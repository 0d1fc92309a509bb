"""Guardrails, lifecycle hooks and retries, for operators, programs and owners of agents.

Guardrails check messages, replies, calls and results. Lifecycle hooks are called at points of a
run. Runs that repeat themselves are detected, and calls with temporary errors are made again.

It plugs in five middleware: `guardrails`, `lifecycle`, `stuck`, `model_retries` and `tool_retries`.
"""
