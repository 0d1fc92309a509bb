"""The network connection of a sandbox: an egress proxy outside that checks every connection.

A sandbox has its own network namespace, in which only loopback works. Before its command starts, a
listening socket is created there and passed out to this process (`handover`). A thread of this
process (`proxy`) accepts connections on the socket as long as the command runs. No part of the
proxy is inside the sandbox, where a command could attack or kill it, and the socket has no name in
a file system.

`hosts` and `rules` check names; `dialling` checks addresses and connects; `request`, `wire` and
`connection` implement HTTP; `execution` ends the proxy with the command.
"""
