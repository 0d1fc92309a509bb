# ruff: noqa: E501 - a row of the table is read as one
"""Information in /proc, /sys and the environment, and settings that can be changed there."""

from tests.attacks.attack import Attack, Proof, Without


def _proc(name: str, source: str, proof: Proof = "secret", without: Without = "bare") -> Attack:
    return Attack(name, "/proc and /sys", source, proof, without)


def _leak(name: str, source: str, proof: Proof = "secret") -> Attack:
    return Attack(name, "environment leaks", source, proof)


_EVERY = """
for pid in os.listdir('/proc'):
    if pid.isdigit():
        try: print(open(f'/proc/{pid}/%s', 'rb').read())
        except OSError: pass
"""

ATTACKS = (
    _proc("the environment of another process", "print(open(f'/proc/{victim}/environ').read())"),
    _proc("the environment of all processes", _EVERY % "environ"),
    _proc("the arguments of all processes", _EVERY % "cmdline"),
    _proc("the memory of another process",
          "for line in open(f'/proc/{victim}/maps'):\n"
          "    if '[stack]' in line:\n"
          "        low, high = (int(n, 16) for n in line.split()[0].split('-'))\n"
          "        memory = open(f'/proc/{victim}/mem', 'rb', 0); memory.seek(low)\n"
          "        print(memory.read(high - low))"),
    _proc("an open file of another process", "print(open(f'/proc/{victim}/fd/0').read())"),
    _proc("the directory of another process", "print(open(f'/proc/{victim}/cwd/secret').read())"),
    _proc("the root of another process",
          "print(open(f'/proc/{victim}/root{secret_path}').read())"),
    _proc("the program of another process",
          "print(open(f'/proc/{victim}/exe', 'rb').read()[-60:])"),
    _proc("the process's chance to be killed for memory",
          "open(f'/proc/{victim}/oom_score_adj', 'w').write('900')", "victim"),
    _proc("the host's TCP sockets",
          "print('SUCCESS' if f':{port:04X} ' in open('/proc/net/tcp').read() else '')", "printed"),
    _proc("the host's UNIX sockets",
          "print('SUCCESS' if '@' + abstract in open('/proc/net/unix').read() else '')", "printed"),
    _proc("the host's file locks",
          "print('SUCCESS' if f':{locked_inode} ' in open('/proc/locks').read() else '')", "printed"),
    _proc("the host's shared memory segments",
          "print('SUCCESS' if f'{segment_key} ' in open('/proc/sysvipc/shm').read() else '')",
          "printed"),
    _proc("the host's devices in /sys",
          "print('SUCCESS' if os.listdir('/sys/class/net') else '')", "printed"),
    _proc("a setting of the network in /proc/sys",
          "open('/proc/sys/net/ipv4/ip_default_ttl', 'w').write('63')\n"
          "print('SUCCESS' if open('/proc/sys/net/ipv4/ip_default_ttl').read() == '63\\n' else '')",
          "printed", "bwrap"),
    _proc("the partitions of the host's disks in /sys/block",
          "print('SUCCESS' if os.listdir('/sys/block') else '')", "printed"),
    _proc("a second /proc with the host's view",
          "os.mkdir(slug)\n"
          "if LIBC.mount(b'proc', slug.encode(), b'proc', 0, None): raise OSError('mount')\n"
          "print('SUCCESS')", "printed", "bwrap"),
    _leak("the caller's environment", "print(dict(os.environ))"),
    _leak("the environment the process began with", "print(open('/proc/self/environ').read())"),
    _leak("descriptors that the caller left open",
          "for f in range(3, 200):\n"
          "    try: print(os.pread(f, 999, 0))\n"
          "    except OSError: pass"),
    _leak("a start-up script of the shell by BASH_ENV", "sh('true', inherited=True)"),
    _leak("modules of the host by PYTHONPATH", "sh('python3 -c \"import planted_module\"')"),
    _leak("the caller's home", "print(open(os.path.expanduser('~/secret')).read())"),
    _leak("the caller's directory", "os.chdir('..'); print(open('outside/secret').read())"),
    _leak("the host's name", "print('SUCCESS' if os.uname().nodename == host_name else '')", "printed"),
    _leak("the host's accounts",
          "import pwd; print('SUCCESS' if len(pwd.getpwall()) > 5 else '')", "printed"),
    _leak("the host's file systems",
          "print('SUCCESS' if os.path.isdir('/etc/apt') or os.path.exists('/etc/fstab')"
          " or os.path.exists('/etc/os-release') else '')", "printed"),
    _leak("a temporary directory of the caller's", "print(open(os.environ['TMPDIR'] + '/secret')"
          ".read())"),
    _leak("a library loaded by LD_LIBRARY_PATH",
          "print('SUCCESS' if 'LD_LIBRARY_PATH' in os.environ else '')", "printed"),
)  # fmt: skip
