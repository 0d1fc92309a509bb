"""Memory: files that an agent keeps between runs and that only a person's decision changes.

Agents read their memory with tools and below /memory. They propose changes, and a person's decision
makes each change. People read and change the same files on the page Knowledge, over REST, in the
terminal and as a folder; the admin is read-only.

The feature adds tools, a mount of the file tools, a kind of approval request, a page, REST
endpoints, frames, an event, admin classes and a command.
"""
