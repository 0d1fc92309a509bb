"""Run attacks one after the other, in any confinement: input from stdin, report on stdout.

This file is passed to the interpreter unchanged and imports no code of the project.
"""

import json
import os
import re
import select
import signal
import sys
import time

PRELUDE = '''
import array, ctypes, errno, fcntl, io, mmap, os, resource, shutil, signal, socket, stat
import struct, subprocess, sys, tarfile, threading, time
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
MACHINE = os.uname().machine
def call(x86, arm, *arguments):
    """A system call by its number; OSError as from `os`."""
    number = x86 if MACHINE == "x86_64" else arm
    if number is None:
        raise SystemExit("ABSENT: no such system call on " + MACHINE)
    wide = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) if isinstance(a, int)
            else a for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
def sh(command, inherited=False):
    kept = {"PATH", "HOME", "PYTHONPATH", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}
    environment = {n: v for n, v in os.environ.items() if inherited or n in kept}
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT, timeout=50, env=environment)
    print(done.stdout.decode(errors="replace"))
'''

SECONDS = 60.0
"""Limit for one attack. Only one that hangs reaches it, also on a busy machine."""
SECRET = re.compile(rb"vel-secret-[0-9a-f]{16}")


def _attack(given: dict) -> None:
    values = {"__name__": "__main__", **given["targets"]}
    exec(compile(PRELUDE, "prelude", "exec"), values)
    try:
        exec(compile(given["source"], given["name"], "exec"), values)
    except SystemExit as end:
        print(end.code or "")
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
        print(f"{type(error).__name__}: {error}")


def _run(given: dict) -> dict:
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        if writing > 2:
            os.close(writing)
        _attack(given)
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    output, ended = b"", False
    while not ended:
        left = SECONDS - (time.monotonic() - began)
        ready = left > 0 and select.select([reading], [], [], min(left, 0.02))[0]
        if ready:
            data = os.read(reading, 65536)
            output = (output + data)[-(1 << 20) :]
            ended = not data
        if os.waitpid(child, os.WNOHANG)[0]:
            child, ended = 0, True
            while select.select([reading], [], [], 0)[0] and (data := os.read(reading, 65536)):
                output += data
        elif left <= 0:
            ended = True
    if child:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(child, 0)
        if time.monotonic() - began >= SECONDS:
            output += b" HANG"
    os.close(reading)
    return {
        "secrets": sorted({found.decode() for found in SECRET.findall(output)}),
        "tail": output[-400:].decode(errors="replace"),
    }


if __name__ == "__main__":
    import ctypes  # noqa: F401 - so that each attack need not
    import socket  # noqa: F401
    import subprocess  # noqa: F401
    import tarfile  # noqa: F401

    outcomes = {given["name"]: _run(given) for given in json.load(sys.stdin)}
    sys.stdout.write("\n" + json.dumps(outcomes))
