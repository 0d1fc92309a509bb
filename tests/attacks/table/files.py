# ruff: noqa: E501 - a row of the table is read as one
"""Escapes from the workspace through paths, links and archives."""

from tests.attacks.attack import Attack, Proof, Without


def _file(name: str, source: str, proof: Proof = "secret", without: Without = "bare") -> Attack:
    return Attack(name, "file escape", source, proof, without)


def _link(name: str, source: str, proof: Proof = "secret", without: Without = "bare") -> Attack:
    return Attack(name, "links and races", source, proof, without)


def _archive(name: str, source: str, proof: Proof = "touched") -> Attack:
    return Attack(name, "archives", source, proof)


# An archive in memory, unpacked without a filter, as most programs do.
_UNPACK = """
box = io.BytesIO()
tar = tarfile.open(fileobj=box, mode="w")
def member(name, data=None, **fields):
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    info.size = len(data or b"")
    tar.addfile(info, io.BytesIO(data or b""))
def unpack():
    tar.close(); box.seek(0); os.mkdir(f"unpacked-{slug}")
    trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
    tarfile.open(fileobj=box).extractall(f"unpacked-{slug}", **trusted)
def up(path):
    return "../" * 30 + path.lstrip("/")
"""

ATTACKS = (
    _file("read by absolute path", "print(open(secret_path).read())"),
    _file("read by climbing", "print(open('../' * 30 + secret_path).read())"),
    _file("read below an open root", "print(open(secret_path, opener=lambda p, f: "
          "os.open(p.lstrip('/'), f, dir_fd=os.open('/', os.O_RDONLY))).read())"),
    _file("read by going home from a deep directory",
          "os.makedirs('a/b/c', exist_ok=True); os.chdir('a/b/c')\n"
          "os.chdir('../' * 30 + os.path.dirname(secret_path)); print(open('secret').read())"),
    _file("list a directory of the host", "print(os.listdir(outside))"),
    _file("read through curl's file URLs", "sh(f'curl -s file://{secret_path}')"),
    _file("read through tar", "sh(f'tar cf - -P {secret_path} | cat')"),
    _file("read another thread's workspace", "print(open(other_thread + '/notes').read())"),
    _file("read the host's /tmp", "print(open(temporary).read())"),
    _file("read the host's shared memory files", "print(open(shared).read())"),
    _file("read a database of the host through sqlite",
          "sh(f'python3 -c \"import sqlite3; c = sqlite3.connect(\\'{database}\\');"
          "print(c.execute(\\'select * from t\\').fetchall())\"')"),
    _file("write by absolute path", "open(mark, 'w').write('x')", "touched"),
    _file("write by climbing", "open('../' * 30 + mark, 'w').write('x')", "touched"),
    _file("make a directory outside", "os.makedirs(mark)", "touched"),
    _file("move a file out", "open(slug, 'w').close(); os.rename(slug, mark)", "touched"),
    _file("make a repository outside", "sh(f'git init -q {mark}')", "touched"),
    _file("attach a database outside",
          "import sqlite3; c = sqlite3.connect(':memory:'); c.execute(f'attach ? as x', (mark,));"
          "c.execute('create table x.t (a)'); c.commit()", "touched"),
    _file("write into another thread's outputs",
          "open(other_thread + '/' + slug, 'w').write('x')\n"
          "print('SUCCESS' if slug in os.listdir(other_thread) else '')", "printed"),
    _file("delete a file of the host", "os.unlink(doomed); print('SUCCESS')", "printed"),
    _file("link a nameless file to outside",
          "f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)\n"
          "LIBC.linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, mark.encode(), 0x400)", "touched"),
    _file("climb out of a chroot",
          "try: call(272, 97, 0x10000000)\n"
          "except OSError: pass\n"
          "os.makedirs('jail', exist_ok=True); os.chroot('jail')\n"
          "os.chdir('../' * 30); print(open(secret_path.lstrip('/')).read())", "secret", "bwrap"),
    _file("learn that a file exists", "print('SUCCESS' if os.path.exists(secret_path) else '')",
          "printed"),
    _file("watch a file of the host",
          "w = LIBC.inotify_add_watch(LIBC.inotify_init(), secret_path.encode(), 2)\n"
          "print('SUCCESS' if w > 0 else '')", "printed"),
    _file("run a program of the host", "sh(f'{outside}/tool --version && echo SUCCESS')", "printed"),
    _link("a link to a file", "os.symlink(secret_path, slug); print(open(slug).read())"),
    _link("a link to a directory", "os.symlink(outside, slug); print(open(slug + '/secret').read())"),
    _link("a link to the root", "os.symlink('/', slug); print(open(slug + secret_path).read())"),
    _link("a hard link to a file", "os.link(secret_path, slug); print(open(slug).read())"),
    _link("a write through a link", "os.symlink(mark, slug); open(slug, 'w').write('x')", "touched"),
    _link("the magic link of an open directory",
          "f = os.open('/', os.O_PATH); print(open(f'/proc/self/fd/{f}{secret_path}').read())"),
    _link("the magic link of the root", "print(open('/proc/self/root' + secret_path).read())"),
    _link("the magic link of a thread's directory",
          "print(open('/proc/thread-self/cwd/' + '../' * 30 + secret_path).read())"),
    _link("a link put in place during a look-up",
          "os.makedirs(slug + 'd', exist_ok=True); open(slug + 'd/secret', 'w').close()\n"
          "os.symlink(outside, slug + 'l')\n"
          "if os.fork() == 0:\n"
          "    end = time.monotonic() + 1.5\n"
          "    while time.monotonic() < end:\n"
          "        LIBC.renameat2(-100, (slug+'d').encode(), -100, (slug+'l').encode(), 2)\n"
          "    os._exit(0)\n"
          "for n in range(20000):\n"
          "    if found := open(slug + 'd/secret').read(): print(found); break\n"
          "os.wait()"),
    _link("a bind mount of a directory outside",
          "os.mkdir(slug)\n"
          "if LIBC.mount(outside.encode(), slug.encode(), None, 4096, None): raise OSError('mount')\n"
          "print(open(slug + '/secret').read())", "secret", "bwrap"),
    _link("a tree opened with open_tree",
          "f = call(428, 428, -100, outside.encode(), 1)\n"
          "print(open('secret', opener=lambda p, g: os.open(p, g, dir_fd=f)).read())",
          "secret", "bwrap"),
    _archive("tar: a member that climbs", _UNPACK + "member(up(mark), b'x'); unpack()"),
    _archive("tar: a member with an absolute name",
             "sh(f\"python3 -c 'import tarfile, io; t = tarfile.open(\\\"{slug}.tar\\\", \\\"w\\\");"
             "i = tarfile.TarInfo(\\\"{mark}\\\"); t.addfile(i); t.close()'; tar xPf {slug}.tar\")"),
    _archive("tar: a file below a link",
             _UNPACK + "member('d', type=tarfile.SYMTYPE, linkname=outside)\n"
             "member('d/' + slug, b'x'); unpack()"),
    _archive("tar: a hard link to a file outside",
             _UNPACK + "member('h', type=tarfile.LNKTYPE, linkname=up(secret_path)); unpack()\n"
             "print(open(f'unpacked-{slug}/h').read())", "secret"),
    _archive("tar: a set-uid member",
             _UNPACK + "member('s', b'x', mode=0o4755); unpack()\n"
             "print('SUCCESS' if os.stat(f'unpacked-{slug}/s').st_mode & 0o4000 else '')", "printed"),
    _archive("zip: names joined to a directory",
             "import zipfile; box = io.BytesIO(); z = zipfile.ZipFile(box, 'w')\n"
             "z.writestr('../' * 30 + mark.lstrip('/'), 'x')\n"
             "for i in z.infolist(): open(os.path.join('.', i.filename), 'wb').write(b'x')"),
    _archive("cpio: a link, then a file below it",
             "import shutil as s\nif not s.which('cpio'): raise SystemExit('ABSENT: no cpio')\n"
             "os.makedirs(slug + '/a'); os.chdir(slug)\n"
             "sh(f'ln -s {outside} l && echo l | cpio -o -H newc > 1 2>&1; rm l; mkdir l;'\n"
             "   f'echo x > l/{slug}; echo l/{slug} | cpio -o -H newc > 2; cd a;'\n"
             "   'cpio -i < ../1; cpio -i < ../2')"),
)  # fmt: skip
