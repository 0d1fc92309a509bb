"""Find suspicious combinations in one file, of parts that are harmless alone."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skills_app.library.scan.finding import ScanFinding
from skills_app.library.scan.rules import SECRET
from skills_app.library.scan.text import at
from text_scanner.linear import compile_linear


def _linear(source: bytes) -> Any:
    return compile_linear(b"(?m)" + source, any_case=True)


_SENDS = _linear(
    rb"curl\b[^\n]{0,300}\s(?:-[a-z]*[dft]\b|--data|--form|--upload-file|-x\s*(?:post|put))|curl\b[^\n]{0,200}https?://[^\s\"']{0,100}(?:\$|=)|wget\b[^\n]{0,100}--post|"
    rb"requests\.(?:post|put|request)|httpx\.(?:post|put)|session\.post|aiohttp|urlopen\s*\([^\n]{0,200}(?:data\s*=|,)|urllib\.request\.request\s*\([^\n]{0,200}data|http\.client|smtplib|sendmail|"
    rb"\.post\s*\(|net::http|http\.newrequest|urllib3|\|\s*ssh\s|\bfetch\s*\([^\n]{0,300}(?:post|body)|axios\.post|xmlhttprequest|https?\.request\s*\(|\|\s*(?:nc|ncat)\b|socket\.(?:socket|create_connection)|\bscp\s|\brsync\s[^\n]{0,80}:|\bftp|invoke-(?:webrequest|restmethod)[^\n]{0,200}-(?:method|body|infile)|senddocument|webhook"
)
_READS = _linear(
    rb"open\s*\(|read_?(?:text|bytes|file)|\.read\s*\(|\bcat\b|\btar\b|\bcp\b|copy|\bzip\b|base64|readfilesync|get-content|expanduser|homedir|path\.home|security\s+find|credential\s+fill|requests\.get|curl|fetch|<\s*/proc|for\s+\w+\s+in"
)
_STORE = _linear(
    rb"security\s+find-(?:generic|internet)-password|git\s+credential(?:-\w+)?\s+fill|secret-tool\s+lookup|"
    rb"json\.dumps\s*\(\s*(?:dict\s*\(\s*)?os\.environ\s*\)|dict\s*\(\s*os\.environ\s*\)\s*\)|json\.stringify\s*\(\s*process\.env\s*\)|urlencode\s*\(\s*(?:dict\s*\(\s*)?os\.environ|\benv\.(?:to_h|inspect|to_json)\b|system\.getenv\(\)|env::vars\(\)|"
    rb"169\.254\.169\.254[^\n]{0,80}(?:iam|security-credentials|token)|metadata\.google\.internal[^\n]{0,120}token"
)
_SECRET = _linear(SECRET)
_HOME = _linear(
    rb"os\.walk\s*\(\s*(?:os\.path\.expanduser\s*\(\s*[\"']~|[\"']/(?:home|users|root)?[\"']|path\.home)|path\.home\(\)\s*\.\s*(?:rglob|glob|walk)|(?:tar|zip)\b[^\n]{0,40}\s(?:~|\$home|/home)(?:/?\s|/?$)|find\s+(?:~|\$home|/home|/)\s[^\n]{0,160}(?:\.env|\.pem|\.key|id_|secret|wallet)"
)
_STAYS = _linear(
    rb"crontab|\.bashrc|\.zshrc|\.bash_profile|\.profile\b|\.zprofile|launchagents|launchctl|systemctl\s+(?:--user\s+)?enable|\.git/hooks/|core\.hookspath|schtasks|currentversion\\\\?run\b|autostart|\.claude[/\"', ]{1,6}\s*/?\s*[\"']?settings"
)
_WRITES = _linear(
    rb">>?|\btee\b|write|\bcp\b|\bmv\b|\|\s*crontab|launchctl\s+load|dumps?\s*\(|/create"
)
_HIDES = _linear(
    rb"nohup\b[^\n]{0,160}(?:~/\.|\$home/\.|/tmp/)|(?:curl|wget)\b[^\n]{0,160}(?:\||https?://)|git\s+bundle|/dev/null\s+2>&1\s*&|powershell|base64\s+-d"
)
_FETCHES = _linear(
    rb"urlopen\s*\(|requests\.get\s*\(|httpx\.get\s*\(|\bfetch\s*\(\s*[\"'`]https?://|https?\.get\s*\("
)
_RUNS = _linear(
    rb"\b(?:exec|eval)\s*\(|new\s+function\s*\(|vm\.run\w*\s*\(|os\.system\s*\(\s*\w+\s*\)"
)
_DROPS = _linear(
    rb"(?:curl|wget)\b[^\n]{0,200}(?:https?://(?:\d{1,3}\.){3}\d|http://)[^\n]{0,200}|(?:curl|wget)\b[^\n]{0,100}\s-\w*[oO]\w*\s+[\"']?(?:/tmp/|/var/tmp/|/dev/shm/|~/\.|\$home/\.)"
)
_MARKS = _linear(rb"chmod\s+(?:[0-7]*[1357][0-7]{2}|\+x|a\+x|u\+x|[0-7]{3,4})\s")
_ENCRYPTS = _linear(
    rb"fernet|aes\.new|\.encrypt\s*\(|openssl\s+enc\s+-aes|gpg\s+(?:-c|--symmetric)"
)
_ALL_FILES = _linear(
    rb"rglob\s*\(\s*[\"']\*|os\.walk\s*\(|find\s+(?:~|\$home|/)\s[^\n]{0,60}-exec|glob\.glob\s*\([^\n]{0,40}\*\*"
)
_REMOVES = _linear(rb"\.unlink\s*\(|os\.remove\s*\(|shred\b|\brm\s+-")
_ENDINGS = _linear(rb"\.(?:locked|encrypted|crypt|enc)\b")
_CONNECTS = _linear(
    rb"net\.dial|tcpstream::connect|new\s+socket\s*\(|net\.(?:connect|socket|createconnection)|create_connection|\.connect\s*\(\s*\(|tcpclient|tcpsocket"
)
_SHELLS = _linear(
    rb"(?:exec\.command|command::new|processbuilder|\.exec|spawn|popen|subprocess\.\w+|execve?l?p?)\s*\(\s*[\[{]?\s*[\"'](?:/bin/)?(?:ba|z)?sh[\"']|[\"'](?:cmd|powershell)(?:\.exe)?[\"']"
)
_PEEKS = _linear(
    rb"pyperclip\.paste|pbpaste|xclip\s+-o|clipboard\.readtext|get-clipboard|imagegrab\.grab|screencapture\s|pyautogui\.screenshot|mss\.mss"
)
_ENDLESS = _linear(
    rb"while\s+(?:true|1|:)|setinterval\s*\(|while\s*\(\s*(?:true|1)\s*\)|for\s*\(\s*;\s*;|loop\s+do"
)
_WINDOWS_GETS = _linear(
    rb"msxml2\.(?:server)?xmlhttp|winhttp\.winhttprequest|urldownloadtofile|net\.webclient"
)
_WINDOWS_RUNS = _linear(rb"savetofile|wscript\.shell|shell\.application|start-process|shellexecute")
_SERVES = _linear(
    rb"http\.server|simplehttpserver|http-server\b|\bserve\s+(?:~|\$home|/)|php\s+-s\s"
)
_TUNNELS = _linear(
    rb"cloudflared\s+tunnel|ngrok\s+http|serveo\.net|localhost\.run|\bbore\s+local|\blt\s+--port"
)


@dataclass(frozen=True, slots=True)
class Combination:
    code: str
    message: str
    parts: tuple[Any, ...]
    """Expressions that must all match in one file. The finding shows the first."""


_NETWORK = (_CONNECTS, _DROPS)
"""Parts that are harmless if the connection is to this machine."""

COMBINATIONS: tuple[Combination, ...] = (
    Combination("secrets-sent", "Reads a file of secrets, and sends data", (_SECRET, _READS, _SENDS)),
    Combination("secrets-sent", "Reads keys or the whole environment, and sends data", (_STORE, _SENDS)),
    Combination("secrets-sent", "Reads all files of a person, and sends data", (_HOME, _SENDS)),
    Combination("secrets-sent", "Records a person's clipboard or screen, and sends it", (_PEEKS, _ENDLESS, _SENDS)),
    Combination("reverse-shell", "Gives a shell to a remote machine", (_CONNECTS, _SHELLS)),
    Combination("remote-code", "Downloads a program and runs it", (_WINDOWS_GETS, _WINDOWS_RUNS)),
    Combination("tunnel", "Serves files of this machine publicly", (_SERVES, _TUNNELS)),
    Combination("persistence", "Stays installed, and runs hidden or remote code", (_STAYS, _WRITES, _HIDES)),
    Combination("remote-code", "Downloads text and runs it", (_RUNS, _FETCHES)),
    Combination("remote-code", "Downloads a program and runs it", (_DROPS, _MARKS)),
    Combination("ransom", "Encrypts all files, and removes them", (_ENCRYPTS, _ALL_FILES, _REMOVES, _ENDINGS)),
)  # fmt: skip


_LOOPBACK = rb"(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)"
_TO_LOOPBACK = _linear(
    rb"\A[\s(\[{]*(?:(?:host\s*[:=]|[\"']tcp[46]?[\"'],)\s*)?[\"']"
    + _LOOPBACK
    + rb"(?::[^\"'\n]{0,20})?[\"']"
)
_ADDRESSES = _linear(rb"https?://")
_LOOPBACK_ADDRESSES = _linear(rb"https?://" + _LOOPBACK + rb"(?:[:/?#\s\"'`;|&]|\z)")
_ARGUMENTS = 200
"""The number of bytes after a call in which its host may follow."""


def _outside(part: Any, data: bytes) -> Any:
    """Return the first match of `part` that is not a connection to this machine."""
    for match in part.finditer(data):
        addresses = len(_ADDRESSES.findall(match[0]))
        if addresses and addresses == len(_LOOPBACK_ADDRESSES.findall(match[0])):
            continue
        if not _TO_LOOPBACK.search(data[match.end() : match.end() + _ARGUMENTS]):
            return match
    return None


def combined(path: str, data: bytes) -> Iterator[ScanFinding]:
    """Yield a danger for each combination that occurs in `data`, the code of a file."""
    for combination in COMBINATIONS:
        part = combination.parts[0]
        first = _outside(part, data) if part in _NETWORK else part.search(data)
        if first is not None and all(part.search(data) for part in combination.parts[1:]):
            yield at(
                "danger", combination.code, path, data, first.span(), f"{combination.message}."
            )
