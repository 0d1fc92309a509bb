"""Final answers in a form that is given as JSON Schema: which schemas are taken, whether a reply
fits, and what the model is told of it. Nothing here knows of runs or rows.
"""
