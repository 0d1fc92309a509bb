"""The form fields of an agent's definition, for the admin and for the pages.

Types, labels and limits come from the options and from the classes of nested values. Each widget
works without a script. `agents/static/agents/web/agent_form.js` adds comfort.
"""
