"""The one way out of a sandbox with network: a proxy outside that checks every connection.

A sandbox has a network namespace of its own, in which only loopback is up. Before its command
begins, a listening socket is made in there and handed out to this process (`handover`). A thread
of this process (`proxy`) accepts on it for as long as the command lives. Nothing is left inside
that could be attacked, killed or found by another sandbox, and no name in any file system.

`hosts` and `rules` decide about names, `addresses`, `routes` and `destinations` about addresses,
`request`, `body`, `tls` and `connection` speak HTTP, `execution` ends it with the command.
"""
