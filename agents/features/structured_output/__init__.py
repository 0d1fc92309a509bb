"""Structured final answers: a caller or an agent requests a JSON value that fits a JSON Schema.

The middleware `structured_output` checks answers and lets the model repair them.
"""
