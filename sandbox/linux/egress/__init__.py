"""The network connection of a sandbox: a proxy outside that checks every connection.

A sandbox has its own network namespace, in which only loopback is up. Before its command starts,
a listening socket is created there and passed out to this process (`handover`). A thread of this
process (`proxy`) accepts on it as long as the command runs. Inside, nothing remains that could be
attacked, killed or found by another sandbox, and no file system has a name for it.

`hosts` and `rules` check names; `addresses`, `routes` and `destinations` check addresses;
`request`, `body`, `tls` and `connection` implement HTTP; `execution` ends it with the command.
"""
