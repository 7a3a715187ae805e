#!/bin/sh
# Sourced by scripts/demo and scripts/test, or run by itself: all that they need, installed once, checked each time.
#
# Leaves $python (the environment's interpreter) and $bin (its commands). The environment is .venv in this
# checkout, or $REMEDY_VENV, with the versions of constraints.txt. It is made again when that file or
# pyproject.toml asks for something else than it holds.

set -eu
cd "$(dirname "$0")/.."
venv=${REMEDY_VENV:-$PWD/.venv}
bin=$venv/bin
python=$bin/python

say() { printf '\033[2m%s\033[0m\n' "$*" >&2; }

install_system_packages() {
    missing=
    for pair in debootstrap:debootstrap systemd-nspawn:systemd-container ip:iproute2 nft:nftables \
        ssh-keyscan:openssh-client git:git busybox:busybox jq:jq; do
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
    want=$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)
    if [ "$(cat "$venv/complete" 2>/dev/null)" = "$want" ] && "$python" -c 'import remedy' 2>/dev/null; then
        return 0
    fi
    say "making the environment $venv (a minute or two)"
    rm -f "$venv/complete"
    python3 -m venv "$venv"
    # What builds the package comes first: pip would fetch it in a version of its own choice for each build.
    "$python" -m pip install -qq --disable-pip-version-check -c constraints.txt hatchling editables
    "$python" -m pip install -qq --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
    printf '%s' "$want" >"$venv/complete"
}

# The frameworks whose own launchers `remedy verify --engine` can use; only scripts/test --full asks for them.
install_engines() {
    want=$(cksum <constraints.txt)
    if [ "$(cat "$1/complete" 2>/dev/null)" != "$want" ]; then
        say "making the environment $1 (3.5 GB, some minutes)"
        rm -f "$1/complete"
        python3 -m venv "$1"
        "$1/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt paddlepaddle mindspore
        printf '%s' "$want" >"$1/complete"
    fi
}

install_system_packages
install_environment
