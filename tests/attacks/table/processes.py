# ruff: noqa: E501 - a row of the table is read as one
"""Signals, limits and traces of other processes, and processes that stay."""

from tests.attacks.attack import Attack, Proof


def _signal(name: str, source: str, proof: Proof = "victim") -> Attack:
    return Attack(name, "signals and other threads", source, proof)


def _stays(name: str, source: str) -> Attack:
    return Attack(name, "processes that stay", source, "left")


def _terminal(name: str, source: str) -> Attack:
    return Attack(name, "terminal and log injection", source, "heard")


_SLEEPER = "[sys.executable, '-c', 'import time; time.sleep(600)', slug]"

ATTACKS = (
    _signal("kill", "os.kill(victim, 9)"),
    _signal("stop", "os.kill(victim, 19)"),
    _signal("kill a process group", "os.killpg(victim, 9)"),
    _signal("tgkill", "call(234, 131, victim, victim, 9)"),
    _signal("a queued signal", "LIBC.sigqueue(victim, 15, None)"),
    _signal("a signal by pidfd", "signal.pidfd_send_signal(os.pidfd_open(victim), 9)"),
    _signal("a signal of a pipe's owner",
            "r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, victim)\n"
            "fcntl.fcntl(r, 10, 15); fcntl.fcntl(r, fcntl.F_SETFL, fcntl.FASYNC); os.write(w, b'x')"),
    _signal("kill from the shell", "sh(f'kill -KILL {victim}')"),
    _signal("a lower priority", "os.setpriority(os.PRIO_PROCESS, victim, 15)"),
    _signal("a lower priority of its group", "os.setpriority(os.PRIO_PGRP, victim, 15)"),
    _signal("another scheduler", "os.sched_setscheduler(victim, os.SCHED_BATCH, "
            "os.sched_param(0))\nos.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0))"),
    _signal("other processors",
            "if len(os.sched_getaffinity(0)) < 2: raise SystemExit('ABSENT: one processor')\n"
            "os.sched_setaffinity(victim, {min(os.sched_getaffinity(0))})"),
    _signal("other limits", "resource.prlimit(victim, resource.RLIMIT_NOFILE, (8, 8))"),
    _signal("another input-output priority", "call(251, 30, 1, victim, 3 << 13)"),
    _signal("trace", "LIBC.ptrace.argtypes = [ctypes.c_long] * 4\n"
            "if LIBC.ptrace(0x4206, victim, 0, 0): raise OSError('ptrace')\nprint('SUCCESS')",
            "printed"),
    _signal("read its memory",
            "maps = open(f'/proc/{victim}/maps').read().split()\n"
            "low = int(maps[0].split('-')[0], 16); data = ctypes.create_string_buffer(16)\n"
            "local = (ctypes.c_size_t * 2)(ctypes.addressof(data), 16)\n"
            "remote = (ctypes.c_size_t * 2)(low, 16)\n"
            "call(310, 270, victim, local, 1, remote, 1, 0); print('SUCCESS')", "printed"),
    _signal("take its descriptor",
            "f = call(438, 438, os.pidfd_open(victim), 0, 0); print(os.pread(f, 99, 0))", "secret"),
    _signal("enter its namespaces",
            "f = os.open(f'/proc/{victim}/ns/net', os.O_RDONLY); print('SUCCESS')", "printed"),
    _signal("read whose it is", "print('SUCCESS' if os.getsid(victim) else '')", "printed"),
    _signal("kill a command in another thread's sandbox", "os.kill(neighbour, 9)\n"
            "print('SUCCESS')", "printed"),
    _stays("a session of its own", f"subprocess.Popen({_SLEEPER}, start_new_session=True)"),
    _stays("a daemon",
           "if os.fork() == 0:\n"
           "    os.setsid()\n"
           "    if os.fork() == 0:\n"
           "        for n in range(64):\n"
           "            try: os.close(n)\n"
           "            except OSError: pass\n"
           f"        os.execv(sys.executable, {_SLEEPER})\n"
           "    os._exit(0)\n"
           "os.wait()"),
    _stays("nohup", "sh(f'nohup setsid python3 -c \"import time; time.sleep(600)\" {slug} "
           ">/dev/null 2>&1 &')"),
    _stays("deaf to every signal",
           "if os.fork() == 0:\n"
           "    os.setsid(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
           f"    os.execv(sys.executable, {_SLEEPER})"),
    _stays("stopped", f"p = subprocess.Popen({_SLEEPER}, start_new_session=True)\n"
           "os.kill(p.pid, 19)"),
    _stays("a reaper of orphans",
           "if os.fork() == 0:\n"
           "    os.setsid(); LIBC.prctl(36, 1, 0, 0, 0)\n"
           f"    subprocess.Popen({_SLEEPER}).wait(); os._exit(0)"),
    _terminal("write to the host's terminal", "open(terminal, 'w').write(slug)"),
    _terminal("take the host's terminal as one's own",
              "if os.fork() == 0:\n"
              "    os.setsid(); f = os.open(terminal, os.O_RDWR)\n"
              "    open('/dev/tty', 'w').write(slug); os._exit(0)\n"
              "os.wait()"),
    _terminal("find every terminal",
              "import glob\n"
              "for name in glob.glob('/dev/pts/[0-9]*'):\n"
              "    if name == terminal: open(name, 'w').write(slug)"),
)  # fmt: skip
