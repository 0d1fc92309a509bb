# ruff: noqa: E501 - a row of the table is read as one
"""Sockets of all kinds, to this host and around the proxy."""

from tests.attacks.attack import Attack, Proof, Without


def _net(name: str, source: str, proof: Proof = "heard", without: Without = "bare") -> Attack:
    return Attack(name, "sockets and network", source, proof, without)


def _url(name: str, url: str) -> Attack:
    """Return a request for a spelling of this host's address. Inside, curl sends it to the proxy."""
    source = (
        f"sh(f\"curl -gsS -m 3 --noproxy '' '{url}'\")"
        if "{host_address}" not in url
        else "if not host_address: raise SystemExit('ABSENT: this host has no address')\n"
        f"sh(f\"curl -gsS -m 3 --noproxy '' '{url}'\")"
    )
    return Attack(
        f"through the proxy: {name}", "sockets and network", source, "heard", network=True
    )


_TCP = "s = socket.create_connection(({host}, port), 3); s.sendall(slug.encode()); s.recv(9)"
_UNIX = (
    "s = socket.socket(socket.AF_UNIX, socket.{kind}); s.connect({name}); s.sendall(slug.encode())"
)

ATTACKS = (
    _net("TCP to 127.0.0.1", _TCP.format(host="'127.0.0.1'")),
    _net("TCP to ::1", _TCP.format(host="'::1'")),
    _net("TCP to 0.0.0.0", _TCP.format(host="'0.0.0.0'")),
    _net("TCP to another loopback address", _TCP.format(host="'127.8.8.8'")),
    _net("TCP to an IPv4 address in IPv6", _TCP.format(host="'::ffff:127.0.0.1'")),
    _net("TCP to the host's own address",
         "if not host_address: raise SystemExit('ABSENT: this host has no address')\n"
         + _TCP.format(host="host_address")),
    _net("data with the first packet",
         "s = socket.socket(); s.sendto(slug.encode(), 0x20000000, ('127.0.0.1', port)); s.recv(9)"),
    _net("UDP", "socket.socket(2, 2).sendto(slug.encode(), ('127.0.0.1', udp_port))"),
    _net("UDP over IPv6", "s = socket.socket(10, 2)\n"
         "s.sendto(slug.encode(), ('::ffff:127.0.0.1', udp_port))"),
    _net("bash's own sockets", "sh(f'exec 3<>/dev/tcp/127.0.0.1/{port}; echo {slug} >&3; read x <&3')"),
    _net("a UNIX socket with a path", _UNIX.format(kind="SOCK_STREAM", name="service") + "; s.recv(1)"),
    _net("a UNIX socket without a path", _UNIX.format(kind="SOCK_STREAM", name="'\\0' + abstract") + "; s.recv(1)"),
    _net("a UNIX datagram",
         _UNIX.format(kind="SOCK_DGRAM", name="'\\0' + abstract + '-dgram'")),
    _net("a UNIX socket that a program left in the working directory",
         _UNIX.format(kind="SOCK_STREAM", name="left") + "; s.recv(1)"),
    _net("a UNIX datagram socket that a program left there",
         _UNIX.format(kind="SOCK_DGRAM", name="left + '-dgram'")),
    _net("half of a pair, sending to that socket",
         "a, b = socket.socketpair(1, 2); a.sendto(slug.encode(), left + '-dgram')"),
    _net("half of a pair, connected again to that socket",
         "a, b = socket.socketpair(1, 2); a.connect(left + '-dgram'); a.send(slug.encode())"),
    _net("a descriptor handed out by a service",
         "s = socket.socket(1); s.connect(service); _, f, *_ = socket.recv_fds(s, 1, 1)\n"
         "s.sendall(b'x'); print(os.pread(f[0], 99, 0))", "secret"),
    _net("netlink", "s = socket.socket(16, 3, 0); s.bind((0, 0)); print('SUCCESS')", "printed"),
    _net("netlink as a pair's family", "socket.socket(16, 2, 15); print('SUCCESS')", "printed"),
    _net("the hypervisor (AF_VSOCK)",
         "try: socket.socket(40, 1); print('SUCCESS')\n"
         "except OSError as e:\n"
         "    raise SystemExit('ABSENT: no vsock' if e.errno == 97 else e)", "printed"),
    _net("the kernel's ciphers (AF_ALG)",
         "try: socket.socket(38, 5); print('SUCCESS')\n"
         "except OSError as e:\n"
         "    raise SystemExit('ABSENT: no AF_ALG' if e.errno == 97 else e)", "printed"),
    _net("a raw socket", "socket.socket(2, 3, 1); print('SUCCESS')", "printed", "bwrap"),
    _net("a packet socket", "socket.socket(17, 3, 0x300); print('SUCCESS')", "printed", "bwrap"),
    _net("multipath TCP",
         "try: s = socket.socket(2, 1, 262)\n"
         "except OSError as e:\n"
         "    raise SystemExit('ABSENT: no MPTCP' if e.errno in (92, 93) else e)\n"
         "s.connect(('127.0.0.1', port)); s.sendall(slug.encode())"),
    _net("a shared memory segment",
         "LIBC.shmat.restype = ctypes.c_void_p; i = LIBC.shmget(segment_key, 0, 0)\n"
         "if i < 0: raise OSError('shmget')\n"
         "print(ctypes.string_at(LIBC.shmat(i, None, 0o10000), 40))", "secret"),
    _url("127.0.0.1", "http://127.0.0.1:{port}/{slug}"),
    _url("localhost", "http://localhost:{port}/{slug}"),
    _url("one decimal number", "http://2130706433:{port}/{slug}"),
    _url("hexadecimal", "http://0x7f000001:{port}/{slug}"),
    _url("octal", "http://0177.0.0.1:{port}/{slug}"),
    _url("two parts", "http://127.1:{port}/{slug}"),
    _url("zero", "http://0:{port}/{slug}"),
    _url("IPv6 loopback", "http://[::1]:{port}/{slug}"),
    _url("IPv4 in IPv6", "http://[::ffff:127.0.0.1]:{port}/{slug}"),
    _url("IPv4 in IPv6, hexadecimal", "http://[::ffff:7f00:1]:{port}/{slug}"),
    _url("a user name that looks like a host", "http://example.org@127.0.0.1:{port}/{slug}"),
    _url("the host's own address", "http://{host_address}:{port}/{slug}"),
    Attack("through the proxy: a tunnel by number", "sockets and network",
           "sh(f\"curl -gsS -p -m 3 --noproxy '' 'http://127.0.0.1:{port}/{slug}'\")",
           "heard", network=True),
    Attack("past the proxy: straight to the host", "sockets and network",
           "sh(f\"curl -gsS -m 3 --noproxy '*' 'http://127.0.0.1:{port}/{slug}'\")",
           "heard", network=True),
)  # fmt: skip
