"""Memory: files that an agent remembers, and that only people change.

Agents read their memory with tools and below /memory. What they want to change waits for a person,
whose decision makes the change. People read and change the same files on the page Knowledge, over
REST, in the terminal and as a folder; in the admin they read them.

It plugs in tools, a mount of the file tools, a kind of approval request, a page, REST endpoints,
frames, an event, admin classes and a command.
"""
