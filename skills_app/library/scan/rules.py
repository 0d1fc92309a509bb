"""Define the actions of code that skills almost never need, as expressions over bytes.

A rule has one severity in code and another in prose and data, where commands are also examples and
warnings. Each match contains one of the words `signs` (lower case).
"""

# Long expressions stay in one line each, where they can be searched for.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skills_app.library.scan.finding import Severity
from text_scanner.linear import compile_linear


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    message: str
    in_code: Severity | None
    in_prose: Severity | None
    expression: Any
    signs: tuple[bytes, ...]


def _rule(
    code: str,
    message: str,
    in_code: Severity | None,
    in_prose: Severity | None,
    source: bytes,
    *signs: str,
) -> Rule:
    return Rule(
        code,
        message,
        in_code,
        in_prose,
        compile_linear(b"(?m)" + source, any_case=True),
        tuple(sign.encode() for sign in signs),
    )


_SHELL = (
    rb"(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+)?(?:/(?:usr/)?bin/)?(?:(?:ba|z|da|k|fi)?sh\b|"
    rb"(?:python[0-9.]*|node|perl|ruby|osascript|php)[ \t]*(?:-[ \t]*)?(?:$|[;&|)\"'`]))"
)
SECRET = (
    rb"(?:\.ssh/(?:id_|\*|known|config\b)|[~}e]/\.(?:ssh|aws|gnupg|azure)\b|\.config/(?:gh|hub|op|sops|rclone|doctl|heroku)\b|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/(?:credentials|config)\b|\.config/gcloud|application_default_credentials|"
    rb"\.azure/|\.kube(?:/config)?\b|\.netrc\b|\.git-credentials|\.npmrc\b|\.pypirc\b|\.docker/config\.json|\.gnupg\b|/etc/shadow\b|"
    rb"\.pgpass\b|login data\b|cookies\.sqlite|logins\.json|key4\.db|wallet\.dat|\.electrum\b|solana/id\.json|metamask|\.bash_history|"
    rb"\.zsh_history|\.password-store|\.kdbx\b|login\.keychain|/proc/(?:self|1|\$\$)/environ)"
)
SECRET_SIGNS = (
    *(
        ".ssh/",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        "id_dsa",
        ".aws/",
        "gcloud",
        "application_default",
    ),
    *(".kube", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".docker/"),
    *(
        "/etc/shadow",
        ".pgpass",
        "login data",
        "cookies.sqlite",
        "logins.json",
        "key4.db",
        "wallet.dat",
    ),
    *(
        ".electrum",
        "solana/",
        "metamask",
        "_history",
        ".password-store",
        ".kdbx",
        "keychain",
        "/environ",
    ),
)
_SEND = rb"(?:curl|wget|\bnc\b|ncat|nslookup|\bdig\b|https?://|requests\.|fetch\(|upload|transfer|scp\b|ftp\b)"

RULES: tuple[Rule, ...] = (
    _rule("remote-code", "Runs downloaded data", "danger", "warning",
          rb"(?:curl|wget)\b[^\n|;]*(?:://|\$|\w\.\w)[^\n|;]*\|\s*" + _SHELL, "curl", "wget"),
    _rule("remote-code", "Runs downloaded data", "danger", "warning",
          rb"(?:\b(?:ba|z)?sh\s+-c|\b(?:bash|sh|zsh|source|eval)|(?:^|\s)\.)\s*[\"'`]?\s*(?:<\(|\$\(|`)\s*(?:curl|wget)\b", "curl", "wget"),
    _rule("remote-code", "Runs downloaded data", "danger", "warning",
          rb"(?:iex|invoke-expression)\b[^\n]*(?:downloadstring|\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|net\.webclient)|"
          rb"(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring)[^\n]*\|\s*(?:iex|invoke-expression)\b", "iex", "invoke-expression"),
    _rule("remote-code", "Runs text that it downloads as code", "danger", "warning",
          rb"\b(?:exec|eval)\s*\([^\n]{0,80}(?:requests|urllib|urlopen|httpx|http\.client|\.get\(|fetch\()[^\n]*", "exec", "eval"),
    _rule("remote-code", "Runs data from a numeric address or an open connection", "danger", "danger",
          rb"(?:curl|wget|\birm\b|\biwr\b)\b[^\n|;]*(?:https?://(?:\d{1,3}\.){3}\d{1,3}\b|http://[a-z0-9.-]{1,100}\.[a-z]{2,})[^\n|;]*\|\s*(?:iex\b|" + _SHELL + rb")", "curl", "wget", "irm", "iwr"),
    _rule("remote-code", "Runs a package from an address", "danger", "warning",
          rb"\bnpx\s+(?:-\w+\s+|--\w+\s+)*[\"']?https?://", "npx"),
    _rule("remote-code", "Downloads a program and runs it", "danger", "warning",
          rb"(?:curl|wget|certutil|bitsadmin|invoke-webrequest|\biwr\b)\b[^\n]*(?:&&|;|\|)\s*(?:chmod\s+[^\n]{0,60}(?:&&|;)\s*)?\(?\s*(?:start\s+[^\n]{0,10})?(?:\./|/tmp/|/var/tmp/|/dev/shm/|%temp%|\$env:temp|~/\.)", "curl", "wget", "certutil", "bitsadmin", "webrequest", "iwr"),
    _rule("remote-code", "Downloads a script and runs it", "danger", "warning",
          rb"(?:curl|wget)\b[^\n;|&]*(?:://|\$)[^\n;|&]*(?:&&|;)\s*(?:chmod\s[^\n;&]*(?:&&|;)\s*)?(?:sudo\s+)?(?:ba|z|da)?sh\s+[\w/.~$-]", "curl", "wget"),
    _rule("remote-code", "Decodes or downloads with a tool for certificates", "danger", "warning",
          rb"certutil\b[^\n]{0,60}-(?:urlcache|decode)|bitsadmin\s+/transfer|mshta\s+(?:https?|javascript|vbscript):|regsvr32\s[^\n]{0,60}/i:http", "certutil", "bitsadmin", "mshta", "regsvr32"),
    _rule("decoded-code", "Runs decoded data", "danger", "danger",
          rb"\b(?:base64\s+(?:-d|--decode|-di)|base32\s+-d|xxd\s+-r|openssl\s+(?:enc|base64)\s+[^\n|]{0,40}-d|rev|uudecode|gunzip|zcat)\b[^\n|]*\|\s*(?:(?:xz|gzip|gunzip|zcat|base64|tr)\b[^\n|]{0,60}\|\s*)?" + _SHELL, "base64", "base32", "xxd", "openssl", "rev", "uudecode", "gunzip", "zcat"),
    _rule("decoded-code", "Runs decoded data", "danger", "warning",
          rb"\b(?:exec|eval|compile)\s*\(\s*(?:base64|b64decode|codecs\.decode|zlib|marshal|lzma|gzip|bytes\.fromhex|bytearray\.fromhex|binascii|atob|buffer\.from|unescape|base64_decode|gzinflate|str_rot13|pickle|decodeuricomponent|string\.fromcharcode|chr\s*\()", "exec", "eval", "compile"),
    _rule("decoded-code", "Runs a command that it decodes", "danger", "warning",
          rb"(?:exec|execsync|system|spawn|spawnsync|popen|check_output|check_call|subprocess\.run|subprocess\.call)\s*\(\s*\[?\s*(?:buffer\.from|atob|base64\.|b64decode|codecs\.decode|bytes\.fromhex|binascii)", "exec", "system", "spawn", "popen", "check_", "subprocess"),
    _rule("decoded-code", "Runs packed code", "danger", "warning", rb"\bmarshal\.loads\s*\(", "marshal.loads"),
    _rule("decoded-code", "Runs a command that is encoded", "danger", "warning",
          rb"powershell(?:\.exe)?\b[^\n]*\s-e(?:n|nc|ncodedcommand|c)?\s+[\"']?[a-z0-9+/=]{24,}", "powershell"),
    _rule("decoded-code", "Runs text that is written backwards", "danger", "warning",
          rb"\b(?:exec|eval|system)\s*\([^\n]*\[::-1\]", "[::-1]"),
    _rule("decoded-code", "Runs code that it changes byte by byte", "danger", "warning",
          rb"\b(?:exec|eval|compile)\s*\([^\n]*\^\s*(?:0x[0-9a-f]+|\d+|key|k\b)[^\n]{0,80}", "exec", "eval", "compile"),
    _rule("hidden-name", "Builds the name of a function from pieces", "danger", "warning",
          rb"__import__\s*\(\s*[\"'][a-z_]{0,12}[\"']\s*\+|getattr\s*\([^\n,]{1,60},\s*[\"'][a-z_]{1,8}[\"']\s*\+\s*[\"']", "__import__", "getattr"),
    _rule("hidden-name", "Imports a module within an expression", "warning", None,
          rb"__import__\s*\(\s*[\"'](?:os|subprocess|socket|pty|ctypes|urllib)", "__import__"),
    _rule("chr-chain", "Text built from character codes", "danger", "warning",
          rb"(?:chr\s*\(\s*\d{2,3}\s*\)\s*[+.&,]\s*){6}|string\.fromcharcode\s*\(\s*(?:\d{2,3}\s*,\s*){12}", "chr", "fromcharcode"),
    _rule("off-screen", "Code far to the right of a line, where readers miss it", "danger", "note",
          rb"\S[^\S\n]{120,}[^\n]{0,4}(?:exec|eval|import|system|curl|wget|require|fetch|;|&&|\||powershell)[^\n]{4}", "   "),
    _rule("reverse-shell", "Gives a shell to a remote machine", "danger", "warning",
          rb"/dev/(?:tcp|udp)/[^\s/]{1,80}/\d+", "/dev/tcp", "/dev/udp"),
    _rule("reverse-shell", "Gives a shell to a remote machine", "danger", "warning",
          rb"\b(?:nc|ncat|netcat)\b[^\n|]{0,60}\s(?:-[a-z]*[ec]\s*|--(?:sh-)?exec\s+)[\"']?(?:/bin/|cmd|powershell)|mkfifo\b[^\n]*\bnc\b|socat\b[^\n]*exec:|system\.net\.sockets\.tcpclient", "nc ", "ncat", "netcat", "mkfifo", "socat", "tcpclient"),
    _rule("reverse-shell", "Gives a shell to a remote machine", "danger", "warning",
          rb"os\.dup2\s*\(\s*\w{1,30}\.fileno\(\)|pty\.spawn\s*\(\s*\[?[\"'](?:/bin/)?(?:ba)?sh|use socket;[^\n]*exec\b|fsockopen\s*\([^\n]*(?:exec|proc_open)", "dup2", "pty.spawn", "use socket", "fsockopen"),
    _rule("reverse-shell", "Runs data from a socket", "danger", "warning",
          rb"tcpsocket\.(?:new|open)[\s\S]{0,300}(?:popen|exec|system|%x)", "tcpsocket"),
    _rule("secrets-sent", "Reads secrets and sends them in one command", "danger", "danger",
          rb"(?:cat|tar|zip|base64|cp|<|type|gc|get-content)[^\n]*" + SECRET + rb"[^\n]*\|[^\n]{0,60}(?:curl|wget|\bnc\b|ncat|openssl s_client)", *SECRET_SIGNS),
    _rule("secrets-sent", "Sends a file of secrets", "danger", "danger",
          rb"(?:curl|wget|scp|rsync|ftp)\b[^\n]*(?:@|--post-file=?\s*|--upload-file\s+|-t\s+|-F\s+\S{0,20}=@|\s)[\"']?(?:~|\$home|\$\{home\}|/home/\w+|/root)?/?" + SECRET + rb"[^\n]*https?://", *SECRET_SIGNS),
    _rule("secrets-sent", "Sends a file of secrets", "danger", "danger",
          rb"(?:curl|wget)\b[^\n]*(?:-d|--data(?:-binary|-raw|-urlencode)?|-F|-T|--form|--upload-file)[ =]?[\"']?\S{0,20}@?\S{0,40}" + SECRET, *SECRET_SIGNS),
    _rule("secrets-sent", "Sends the environment, with all keys in it", "danger", "danger",
          rb"\b(?:env|printenv|set|export -p)\b\s*\|[^\n]{0,80}(?:curl|wget|\bnc\b|ncat)|(?:curl|wget)\b[^\n]*[\"'=@]?(?:\$\(\s*(?:env|printenv)\b|`(?:env|printenv)`|<\(\s*env\b)", "env"),
    _rule("secrets-sent", "Sends data out in DNS names", "danger", "warning",
          rb"\b(?:nslookup|dig|host|ping)\s[^\n`]{0,40}\$[({]?\w[^\n`/]{0,80}\.[a-z]{2,}", "nslookup", "dig ", "host ", "ping "),
    _rule("secrets-read", "Reads the system's password store", "warning", "note",
          rb"security\s+find-(?:generic|internet)-password|secret-tool\s+lookup|git\s+credential(?:-\w+)?\s+fill|cmdkey\s+/list|vaultcmd", "find-generic", "find-internet", "secret-tool", "credential", "cmdkey", "vaultcmd"),
    _rule("secrets-read", "Names a file with secrets", "warning", "note", SECRET, *SECRET_SIGNS),
    _rule("secrets-read", "Reads the whole environment as data", "warning", "note",
          rb"json\.dumps\s*\(\s*(?:dict\s*\(\s*)?os\.environ|json\.stringify\s*\([^\n]{0,40}process\.env\s*[,)}]|urlencode\s*\(\s*os\.environ|str\s*\(\s*(?:dict\s*\(\s*)?os\.environ", "environ", "process.env"),
    _rule("cloud-metadata", "Requests the keys of a cloud machine", "warning", "note",
          rb"169\.254\.169\.254|metadata\.google\.internal|100\.100\.100\.200", "169.254", "metadata.google", "100.100"),
    _rule("key-logger", "Listens to the keyboard", "danger", "note",
          rb"pynput[\s\S]{0,200}keyboard|keyboard\.on_press|getasynckeystate|setwindowshookex|/dev/input/event", "pynput", "keyboard", "getasync", "setwindowshook", "/dev/input"),
    _rule("persistence", "Gives itself access to later logins", "danger", "warning",
          rb"(?:>>|tee\s+-a|write|append|cat\s+>)[^\n]*authorized_keys", "authorized_keys"),
    _rule("persistence", "Gives an account all rights", "danger", "warning",
          rb"nopasswd\s*:\s*all|(?:>>?|tee\s+(?:-a\s+)?)\s*/etc/sudoers", "nopasswd", "sudoers"),
    _rule("persistence", "Loads a library into every program", "danger", "note",
          rb"(?:export|echo|>>)[^\n]{0,40}(?:ld_preload|dyld_insert_libraries)\s*=|>\s*/etc/ld\.so\.preload", "ld_preload", "dyld_insert", "ld.so.preload"),
    _rule("persistence", "Runs at every start of Python", "danger", "warning",
          rb"(?:getsitepackages|site-packages|getusersitepackages)[\s\S]{0,200}(?:\.pth|sitecustomize|usercustomize)", ".pth", "customize"),
    _rule("persistence", "Runs repeatedly by a schedule", "warning", "note",
          rb"\|\s*crontab\b|crontab\s+-\s|crontab\s+[\"']?[/$~\w]|(?:>>?|tee)\s*[^\n]{0,20}/etc/cron|schtasks\s+/create|\bat\s+now\b", "cron", "schtasks", "at now"),
    _rule("persistence", "Runs at every login", "warning", "note",
          rb"(?:>>|tee\s+-a)\s*[\"']?[^\s\"'|;&]{0,60}(?:\.bashrc|\.zshrc|\.bash_profile|\.profile|\.zprofile|\.zshenv|config\.fish)|launchctl\s+(?:load|bootstrap)|library/launch(?:agents|daemons)/|systemctl\s+(?:--user\s+)?enable|currentversion\\\\?run\b|\.config/autostart", "bashrc", "zshrc", "profile", "zshenv", "config.fish", "launch", "systemctl", "currentversion", "autostart"),
    _rule("persistence", "Writes a hook that git runs", "warning", "note",
          rb"(?:>|tee|cp|ln|mv|write)[^\n]*\.git/hooks/|core\.hookspath", ".git/hooks", "hookspath"),
    _rule("agent-settings", "Changes an agent's permissions or automatic commands", "warning", "note",
          rb"\.claude[/\"', ]{1,6}\s*/?\s*[\"']?settings(?:\.local)?\.json|\.cursor/mcp\.json|claude_desktop_config\.json|dangerously-skip-permissions|\bskipdangerousmodepermissionprompt", ".claude", ".cursor", "claude_desktop", "dangerously-skip", "skipdangerous"),
    _rule("setuid", "Lets a program run as its owner", "danger", "warning",
          rb"chmod\s+(?:-\w+\s+)*(?:[ugoa]*\+[rwx]*s|[2467][0-7]{3}\b)|os\.chmod\s*\([^\n]{0,80}0o?[46][0-7]{3}\b|setcap\s+cap_", "chmod", "setcap"),
    _rule("deletes", "Deletes all of a person's files, or of the system", "danger", "warning",
          rb"\brm\s+(?:-[a-z]+\s+|--[a-z-]+\s+)*-[a-z]*[rf][a-z]*\s+(?:--[a-z-]+\s+)*[\"']?(?:~|\$home|\$\{home\}|/)(?:/?\*)?[\"']?(?:\s|;|&|$)|--no-preserve-root|\bmkfs\.\w+\s+/dev/|\bdd\s[^\n]{0,80}of=/dev/(?:sd|nvme|disk|hd)|format\s+c:\s*/|vssadmin\s+delete", "rm ", "no-preserve", "mkfs", "of=/dev", "format c", "vssadmin"),
    _rule("deletes", "Deletes all of a person's files, or of the system", "danger", "warning",
          rb"(?:rmtree|rmsync|rm_rf|removeall|remove_dir_all|rimraf)\s*\(\s*(?:os\.path\.expanduser\s*\(\s*[\"']~/?[\"']\s*\)|(?:pathlib\.)?path\.home\(\)|os\.homedir\(\)|dir\.home|[\"'](?:/|~|c:\\+)[\"'])\s*[,)]|"
          rb"remove-item\b[^\n]*-recurse[^\n]*(?:\$home|\$env:userprofile|c:\\)(?:\s|$|[\"'*])", "rmtree", "rmsync", "rm_rf", "removeall", "remove_dir_all", "rimraf", "remove-item"),
    _rule("ransom", "Mentions ransom", "danger", "note",
          rb"ransom|pay\s[^\n]{0,40}(?:btc|bitcoin|xmr|monero)[^\n]{0,60}(?:decrypt|recover|unlock)", "ransom", "decrypt", "recover", "unlock"),
    _rule("miner", "Mines cryptocurrency", "danger", "warning",
          rb"stratum\+(?:tcp|ssl)|\bxmrig\b|coinhive|cryptonight|minerd\b", "stratum", "xmrig", "coinhive", "cryptonight", "minerd"),
    _rule("sandbox-escape", "Accesses the host of its container", "warning", "note",
          rb"docker\.sock|\bnsenter\b|--privileged\b|-v\s+/:/|chroot\s+/host|/proc/1/root|release_agent", "docker.sock", "nsenter", "privileged", ":/", "chroot", "/proc/1/root", "release_agent"),
    _rule("sandbox-escape", "Takes over the host of its container", "danger", "warning",
          rb"-v\s+/:/\w+[^\n]*chroot|--privileged[^\n]{0,80}-v\s+/:/", "-v /"),
    _rule("covers-tracks", "Switches off logs or protections", "warning", "note",
          rb"history\s+-c\b|unset\s+histfile|histfile=/dev/null|set-mppreference\s+-disable|setenforce\s+0|csrutil\s+disable|spctl\s+--master-disable|xattr\s+-(?:c|d\s+com\.apple\.quarantine|rd?)\b|-w(?:indowstyle)?\s+hidden", "histor", "histfile", "set-mppreference", "setenforce", "csrutil", "spctl", "xattr", "hidden"),
    _rule("tunnel", "Opens a tunnel to this machine", "warning", "note",
          rb"\bssh\b[^\n]*\s-\w*R\s*\S*\d+:|\bngrok\s+(?:tcp|http|start)|cloudflared\s+tunnel|\bbore\s+local|serveo\.net", "ssh ", "ngrok", "cloudflared", "bore ", "serveo"),
    _rule("tunnel", "Opens a tunnel for an unchecked machine", "danger", "warning",
          rb"\bssh\b[^\n]{0,80}stricthostkeychecking=no[^\n]{0,80}\s-\w*R\s*\S*\d+:|\bssh\b[^\n]{0,80}\s-\w*R\s*\S*\d+:[^\n]{0,80}stricthostkeychecking=no", "stricthostkeychecking"),
    _rule("install", "Installs packages from an index that is not checked", "danger", "warning",
          rb"--(?:extra-)?index-url[ =]\s*[\"']?http://|--trusted-host\b|npm\s+(?:i|install|config set)\b[^\n]{0,80}registry[ =]\s*http://", "index-url", "trusted-host", "registry"),
    _rule("install", "Installs from an address", "warning", "note",
          rb"(?:pip3?|uv pip|pipx|uvx|uv tool)\s+(?:install|run)?[^\n]{0,80}(?:git\+|https?://)|npm\s+(?:i|install)\s[^\n]{0,60}(?:git\+|https?://)|(?:go|cargo)\s+install\s+[^\n]{0,20}(?:--git|https?://)|--(?:extra-)?index-url", "git+", "http", "--git", "index-url"),
    _rule("install", "Runs a command when it is installed", "danger", "warning",
          rb"\"(?:pre|post)?(?:install|prepare)\"\s*:\s*\"[^\n]*(?:curl|wget|node -e|eval\(|child_process|base64|https?://)", "install\"", "prepare\""),
    _rule("install", "Installs packages when it runs", "note", None,
          rb"(?:pip3?|uv pip)\s+install\b|npm\s+(?:i|install|ci)\b|apt(?:-get)?\s+install|brew\s+install|[\"']-m[\"'],\s*[\"']pip[\"']", "install", "\"pip\"", "'pip'", "npm "),
    _rule("decoded-code", "Runs data from a request", "danger", "warning",
          rb"\b(?:eval|assert|system|exec|passthru|shell_exec)\s*\(\s*@?\s*(?:base64_decode\s*\(\s*)?\$_(?:post|get|request|cookie|server)", "$_"),
    _rule("eval", "Runs text as code", "note", None,
          rb"\b(?:eval|exec)\s*\(|new\s+function\s*\(", "eval", "exec", "function"),
    _rule("lure", "Asks to download a file and open it with a password", "danger", "danger",
          rb"(?:\.zip|\.rar|\.7z|\.exe|\.dmg|\.pkg|\.msi)\b[^\n]*\b(?:extract|unzip|open|unpack|decompress)\w*\b[^\n]{0,80}\bpass(?:word|code|phrase)?\b|\bpass(?:word|code)\b[^\n]{0,80}\b(?:extract|unzip|unpack)\w*\b[^\n]*(?:\.zip|\.rar|\.7z|\.exe)\b|unzip\s+-P\s", "extract", "unzip", "open", "unpack", "decompress"),
    _rule("lure", "Asks to run a command from an anonymous page", "danger", "danger",
          rb"(?:rentry\.(?:co|org)|pastebin\.com|glot\.io|hastebin|ghostbin|dpaste|paste\.ee|0x0\.st|ix\.io|termbin|controlc\.com|justpaste\.it|telegra\.ph)/?[^\n]*\b(?:copy|run|execute|paste|terminal|command|install)|\b(?:copy|run|execute|terminal|curl|wget)\b[^\n]*(?:rentry\.(?:co|org)|pastebin\.com|glot\.io|hastebin|ghostbin|dpaste|paste\.ee|0x0\.st|ix\.io/|termbin|controlc\.com|justpaste\.it|telegra\.ph)", "rentry", "pastebin", "glot.io", "hastebin", "ghostbin", "dpaste", "paste.ee", "0x0.st", "ix.io", "termbin", "controlc", "justpaste", "telegra.ph"),
    _rule("secrets-sent", "Asks to put secrets into an address", "danger", "danger",
          rb"(?:\.env\b|credentials?\b|api[ _-]?keys?|passwords?|\btokens?|private key|environment variables?|" + SECRET + rb")[^\n]*https?://[^\s)\"']{1,120}[?&]\w{1,12}=(?:<|\{|\$|\[|%3c|\s|$)", "http"),
)  # fmt: skip


def rules_of(present: set[bytes]) -> list[Rule]:
    """Return the rules that may match in a text with the signs `present`."""
    return [rule for rule in RULES if any(sign in present for sign in rule.signs)]


SIGNS: tuple[bytes, ...] = tuple(sorted({sign for rule in RULES for sign in rule.signs}))
