"""Final answers in a form: a caller or an agent asks for a JSON value that fits a JSON Schema.

It plugs in the middleware `structured_output`, which checks answers and lets the model repair them.
"""
