#!/bin/sh
# Sourced by scripts/demo and scripts/test, or run by itself: all that they need, installed once, checked each time.
#
# Leaves $python (the environment's interpreter) and $bin (its commands). The environment is .venv in this
# checkout, or $REMEDY_VENV. It is made again when pyproject.toml asks for something else than it holds.

set -eu
cd "$(dirname "$0")/.."
venv=${REMEDY_VENV:-$PWD/.venv}
bin=$venv/bin
python=$bin/python
# The CPU and the CUDA build of a release have one number; any build that is there already will do.
torch='torch==2.13.0'

say() { printf '\033[2m%s\033[0m\n' "$*" >&2; }

install_system_packages() {
    missing=
    for pair in debootstrap:debootstrap systemd-nspawn:systemd-container ip:iproute2 nft:nftables \
        ssh-keyscan:openssh-client git:git busybox:busybox; do
        command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
    done
    python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "not installed:$missing (needs root and apt; tests that need them are skipped)"
        return 0
    fi
    say "installing$missing"
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

install_environment() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
        echo "remedy needs Python 3.10 or newer; python3 here is $(python3 --version)" >&2
        exit 2
    }
    want=$(cat pyproject.toml scripts/setup.sh | cksum)
    if [ "$(cat "$venv/complete" 2>/dev/null)" = "$want" ] && "$python" -c 'import remedy' 2>/dev/null; then
        return 0
    fi
    say "making the environment $venv (a minute or two)"
    rm -f "$venv/complete"
    python3 -m venv "$venv"
    "$python" -m pip install -qq --disable-pip-version-check "$torch"
    "$python" -m pip install -qq --disable-pip-version-check -e '.[dev]'
    printf '%s' "$want" >"$venv/complete"
}

# The frameworks whose own launchers `remedy verify --engine` can use; only scripts/test --full asks for them.
install_engines() {
    want='paddlepaddle==3.3.1 mindspore==2.10.0'
    if [ "$(cat "$1/complete" 2>/dev/null)" != "$want" ]; then
        say "making the environment $1 (3.5 GB, some minutes)"
        rm -f "$1/complete"
        python3 -m venv "$1"
        # shellcheck disable=SC2086 # a list of words
        "$1/bin/python" -m pip install -qq --disable-pip-version-check $want
        printf '%s' "$want" >"$1/complete"
    fi
}

install_system_packages
install_environment
