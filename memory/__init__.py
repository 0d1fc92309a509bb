"""Memory: files that an agent keeps between runs, and changes only with a person's permission.

Agents read their memory with tools and below /memory. They propose changes. A person decides about
each change, unless the agent's owner has allowed the agent to save notes without asking. People
read and change the same files on the page Knowledge, over REST, in the terminal and as a folder;
the admin shows them and can restore revisions.

The feature adds tools, a mount of the file tools, a kind of approval request, a page, REST
endpoints, frames, an event, admin classes and a command.
"""
