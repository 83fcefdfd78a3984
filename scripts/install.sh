#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installs what Freeport needs to be built and tested, and nothing that is there already.
# Quiet and quick when nothing is missing, so every make target starts with it.
set -euo pipefail

# Debian packages, each with a file or command that shows it is there.
needed=(
    "clang-19=clang-19"
    "gcc=gcc"
    "libc6-dev=/usr/include/stdio.h"
    "make=make"
    "git=git"
    "curl=curl"
    "ca-certificates=/etc/ssl/certs/ca-certificates.crt"
    "pkg-config=pkg-config"
    "iproute2=ip"
)
oldest_cargo_minor=88

is_there() {
    case "$1" in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null 2>&1 || [ -x "/sbin/$1" ] || [ -x "/usr/sbin/$1" ] ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "install.sh: not root and no sudo; run as root: $*" >&2
        return 1
    fi
}

install_packages() {
    local missing=()
    for entry in "${needed[@]}"; do
        is_there "${entry#*=}" || missing+=("${entry%%=*}")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "install.sh: no apt-get here; install these yourself: ${missing[*]}" >&2
        return 1
    fi
    echo "install.sh: installing ${missing[*]}" >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# Whether the cargo at $1 is new enough for the edition the workspace is written in.
is_new_enough() {
    local version
    version=$("$1" --version 2>/dev/null) || return 1
    [[ "$version" =~ ^cargo\ ([0-9]+)\.([0-9]+) ]] || return 1
    ((BASH_REMATCH[1] > 1 || BASH_REMATCH[2] >= oldest_cargo_minor))
}

install_rust() {
    # The same order as the Makefile's PATH, so that what is checked is what is used.
    local PATH="$HOME/.cargo/bin:$PATH"
    ! is_new_enough cargo || return 0
    echo "install.sh: installing a Rust toolchain with rustup" >&2
    local rustup
    rustup=$(mktemp)
    curl --proto '=https' --tlsv1.2 -sSf -o "$rustup" \
        https://static.rust-lang.org/rustup/rustup-init.sh
    sh "$rustup" -y --quiet --profile minimal --component rustfmt --component clippy \
        --default-toolchain stable --no-modify-path </dev/null >/dev/null
    rm -f "$rustup"
}

install_packages
install_rust
