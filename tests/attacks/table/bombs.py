# ruff: noqa: E501 - a row of the table is read as one
"""Attempts to use up the host. Each has its own sandbox with the limits below.

Without the guard they use only slightly more than these limits, so they do not harm the host.
"""

from __future__ import annotations

from sandbox.policy import Limits
from tests.attacks.attack import Attack

MIB = 1024**2
SECONDS = 5.0
"""Wall time."""
HOLD = 4.5
"""The seconds for which a limit stays exceeded: periodic guards can be late on a busy machine."""
LIMITS = Limits(
    processes=40,
    memory=256 * MIB,
    memory_total=96 * MIB,
    file_size=4 * MIB,
    disk=16 * MIB,
    files=300,
    open_files=64,
    cpu_seconds=1,
    output=100_000,
    output_flood=MIB,
    tmp_size=8 * MIB,
)


def _bomb(name: str, source: str) -> Attack:
    return Attack(name, "resource bombs", source + "\nprint('SUCCESS', file=sys.stderr)")


ATTACKS = (
    _bomb("processes", "for n in range(60):\n    if os.fork() == 0: time.sleep(3); os._exit(0)"),
    _bomb("processes by vfork and exec", "for n in range(60): subprocess.Popen(['sleep', '3'])"),
    _bomb("threads", "stop = threading.Event()\n"
          "threads = [threading.Thread(target=stop.wait) for n in range(60)]\n"
          "for t in threads: t.start()\n"
          "stop.set()"),
    _bomb("memory of one process", "m = bytearray(320 << 20)"),
    _bomb("memory of several processes",
          "r, w = os.pipe()\n"
          "for n in range(4):\n"
          "    if os.fork() == 0:\n"
          "        m = bytearray(b'x' * (40 << 20)); os.write(w, b'x'); time.sleep(2); os._exit(0)\n"
          "for n in range(4): os.read(r, 1)\n"
          "time.sleep(HOLD)"),
    _bomb("memory files",
          "fs = [os.memfd_create('x') for n in range(50)]\n"
          "for f in fs: os.write(f, b'x' * (3 << 20))\n"
          "time.sleep(HOLD)"),
    _bomb("shared anonymous memory", "m = mmap.mmap(-1, 150 << 20)\n"
          "for n in range(0, 150 << 20, 4096): m[n] = 1\n"
          "time.sleep(HOLD)"),
    _bomb("/dev/shm", "name = '/dev/shm/' + slug\n"
          "try:\n"
          "    for n in range(4): open(f'{name}-{n}', 'wb').write(b'x' * (3 << 20))\n"
          "finally:\n"
          "    for n in range(4):\n"
          "        if os.path.exists(f'{name}-{n}'): os.unlink(f'{name}-{n}')"),
    _bomb("one large file", "open('large', 'wb').write(b'x' * (8 << 20))"),
    _bomb("one sparse file", "os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 40)"),
    _bomb("a bomb of zip",
          "import zlib; c = zlib.compressobj(9)\n"
          "data = b''.join(c.compress(bytes(1 << 20)) for n in range(8)) + c.flush()\n"
          "open('unzipped', 'wb').write(zlib.decompress(data))"),
    _bomb("many middling files",
          "for n in range(10): open(f'm{n}', 'wb').write(os.urandom(3 << 20))\n"
          "time.sleep(HOLD)"),
    _bomb("many names", "for n in range(1000): open(f'n{n}', 'w').close()\n"
          "time.sleep(HOLD)"),
    _bomb("directories nested very deep",
          "for n in range(400): os.mkdir('d'); os.chdir('d')\n"
          "time.sleep(HOLD)"),
    _bomb("files that were deleted and are open",
          "fs = []\n"
          "for n in range(10):\n"
          "    fs.append(open(f'x{n}', 'wb')); fs[-1].write(os.urandom(3 << 20)); fs[-1].flush()\n"
          "    os.unlink(f'x{n}')\n"
          "time.sleep(HOLD)"),
    _bomb("open files", "fs = [os.open('/dev/null', 0) for n in range(100)]"),
    _bomb("a processor, deaf to the limit's signal",
          "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
          "while time.process_time() < 2.2: pass"),
    _bomb("sleep past the time limit", "time.sleep(SECONDS + 0.5)"),
    _bomb("sleep past the time limit, deaf and detached from the output",
          "for n in range(1, 65):\n"
          "    try: signal.signal(n, signal.SIG_IGN)\n"
          "    except (OSError, ValueError): pass\n"
          "saved = os.dup(2); os.close(1); os.dup2(os.open('/dev/null', 1), 2)\n"
          "time.sleep(SECONDS + 0.5); os.dup2(saved, 2)"),
    _bomb("a flood of output", "for n in range(50): os.write(1, b'x' * 65536)"),
    _bomb("a flood of errors without a line's end",
          "for n in range(50): os.write(2, b'\\xff' * 65536)"),
)  # fmt: skip
