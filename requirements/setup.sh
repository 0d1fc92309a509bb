#!/usr/bin/env bash
# Set up a clone. `make` calls this script:
#
#   requirements/setup.sh python run|dev|lowest|release   the virtual environment with the pinned packages
#   requirements/setup.sh system run|test         the system packages, by apt
#
# PYTHON and VENV name the interpreter and the virtual environment. INSTALLER is `uv` or `pip`.
# After an error, the last line says how to fix it, and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "Error: $*" >&2
    exit 1
}

# Run a command and show its output only after an error.
quietly() {
    local output
    output=$("$@" 2>&1) || explain "$output"
}

disk_is_full() { [ "$(df -Pk "$(dirname "$VENV")" | awk 'NR == 2 { print $4 }')" -lt 10240 ]; }

explain() {
    tail -n 5 <<<"$1" >&2
    case $1 in
        *"No space left on device"* | *"os error 28"* | *"Disk quota exceeded"* | *"enough free space"*)
            fail "The disk is full. Free some space (\`df -h\` shows where) and try again." ;;
        *"DO NOT MATCH THE HASHES"* | *"ash mismatch"*)
            fail "The package index served a file that is not the pinned one. Check the index settings of $INSTALLER." ;;
        *"error sending request"* | *"dns error"* | *"new connection"* | *"onnection"*refused* | \
            *"timed out"* | *"Temporary failure"* | *"Could not resolve"* | *"Failed to fetch"*)
            fail "The packages cannot be downloaded. Check the network connection and the proxy settings, and try again." ;;
        *)
            # `python -m venv` does not show why ensurepip failed.
            disk_is_full && fail "The disk is full. Free some space (\`df -h\` shows where) and try again."
            fail "The set-up failed. Correct the error above and try again." ;;
    esac
}

install_system() {
    local as_root=()
    command -v apt-get >/dev/null || fail "Install these programs with your package manager, and try again: $*"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "System packages are missing. As root, run: apt-get install $*"
        # Without a terminal, sudo cannot ask for a password.
        sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } \
            || fail "System packages are missing, and sudo is refused. As root, run: apt-get install $*"
        as_root=(sudo)
    fi
    echo "Installing system packages: $*"
    quietly "${as_root[@]}" apt-get update -qq
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

system() {
    local missing=()
    need() { command -v "$1" >/dev/null || missing+=("${@:2}"); }
    PATH=$PATH:/usr/sbin
    need bwrap bubblewrap
    if [ "$1" = test ]; then
        need chromium chromium fonts-dejavu-core
        need npm nodejs npm
        need mariadbd mariadb-server-core
        compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
        # With it the browser tests take half of the time. Some distributions do not have it.
        if ! command -v chromium-headless-shell >/dev/null \
            && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
            missing+=(chromium-headless-shell)
        fi
    fi
    [ "${#missing[@]}" = 0 ] || install_system "${missing[@]}"
}

create_environment() {
    local version
    version=$("$PYTHON" -c 'import sys; assert sys.version_info >= (3, 11); print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
        || fail "Vel needs Python 3.11 or newer. Name one, for example: make PYTHON=/usr/bin/python3.11 …"
    "$PYTHON" -c 'import ensurepip' 2>/dev/null || install_system "python$version-venv"
    trap 'rm -rf "$VENV"' EXIT # An incomplete environment would look like a complete one.
    quietly "$PYTHON" -m venv --clear "$VENV"
    trap - EXIT
}

# uv does not read the settings of pip, so pip installs if they name an index or a proxy.
choose_installer() {
    local settings
    settings=$("$VENV/bin/pip" config list)
    if grep -qE '[.](index-url|no-index|proxy|client-cert|trusted-host)=' <<<"$settings"; then
        INSTALLER=pip
        echo "Installing with pip, because its settings name an index or a proxy (INSTALLER=uv for uv)"
    else
        INSTALLER=uv
    fi
}

python() {
    local pip=("$VENV/bin/pip" install --quiet --disable-pip-version-check) installer
    [ -x "$VENV/bin/pip" ] || create_environment
    [ -n "$INSTALLER" ] || choose_installer
    case $INSTALLER in
        uv)
            quietly "${pip[@]}" --require-hashes -r requirements/uv.txt
            installer=("$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python") ;;
        pip) installer=("${pip[@]}") ;;
        *) fail "INSTALLER is '$INSTALLER'; it must be uv or pip." ;;
    esac
    echo "Installing the packages of requirements/$1.txt with $INSTALLER"
    quietly "${installer[@]}" --require-hashes -r "requirements/$1.txt"
    # The build backend is one of the pinned packages.
    quietly "${installer[@]}" --no-deps --no-build-isolation -e .
}

: "${PYTHON:=python3}" "${VENV:=.venv}" "${INSTALLER:=}"
case "$*" in
    "python run" | "python dev" | "python lowest" | "python release" | "system run" | "system test") "$1" "$2" ;;
    *) fail "usage: requirements/setup.sh python run|dev|lowest|release, or requirements/setup.sh system run|test" ;;
esac
