#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installs what a purpose needs and the machine lacks. Quiet and quick when nothing is missing, so
# every make target starts with it.
#
#   install.sh                 to build
#   install.sh --demo          to build and to run `make demo`
#   install.sh --test          to build and to run `make test`
#   install.sh --applications  that, and every program of docs/reference/applications.csv
#   install.sh --area          to build and to measure how large hardware is
#   install.sh --docs          to build the book of docs/, and nothing else
set -euo pipefail

# Debian packages, each with a file or command whose presence shows that it is installed.
to_build=(
    "clang-19=clang-19"
    "gcc=gcc"
    "g++=g++"
    "python3-venv=/usr/lib/python3.*/ensurepip"
    "libc6-dev=/usr/include/stdio.h"
    "make=make"
    "git=git"
    "curl=curl"
    "ca-certificates=/etc/ssl/certs/ca-certificates.crt"
    "libbpf-dev=/usr/include/bpf/bpf_helpers.h"
    "libelf-dev=/usr/include/libelf.h"
    "zlib1g-dev=/usr/include/zlib.h"
    "pkg-config=pkg-config"
)
# Network namespaces, and the programs measured plain and accelerated.
for_demo=(
    "iproute2=ip"
    "redis-server=redis-server"
    "redis-tools=redis-benchmark"
    "nginx-light=nginx"
    "memcached=memcached"
    "wrk=wrk"
    "iperf3=iperf3"
)
# Programs used by pages of docs/, and one program of each kind that every test run accelerates.
for_test=(
    "ethtool=ethtool"
    "iputils-ping=ping"
    "liburing2=/usr/lib/*/liburing.so.2"
    "default-jdk-headless=javac"
    "golang-go=go"
    "systemd=systemd-analyze"
    "etcd-server=etcd"
    "etcd-client=etcdctl"
)
# More programs, which are tested if they are installed.
applications=(
    "apache2-bin=apache2"
    "apache2-utils=ab"
    "haproxy=haproxy"
    "lighttpd=lighttpd"
    "mosquitto=mosquitto"
    "mosquitto-clients=mosquitto_pub"
    "netcat-openbsd=nc"
    "nodejs=node"
    "openssh-server=sshd"
    "openssl=openssl"
    "openvswitch-switch=ovs-vsctl"
    "postgresql=/usr/lib/postgresql/*/bin/postgres"
    "python3-pymemcache=/usr/lib/python3/dist-packages/pymemcache"
    "python3-redis=/usr/lib/python3/dist-packages/redis"
    "rsync=rsync"
    "socat=socat"
    "stunnel4=stunnel4"
    "uwsgi-core=uwsgi-core"
    "uwsgi-plugin-python3=/usr/lib/uwsgi/plugins/python3*_plugin.so"
    "varnish=varnishd"
    "wget=wget"
)
# Tools for hardware, in a Python environment of their own: the simulator, since Debian's is too
# old, and with --area the tool that measures the size of hardware.
hardware_tools="$HOME/.cache/freeport/hardware-tools"
# One file each, with the versions and hashes of all its packages; the tool itself comes first.
simulator="$(dirname "${BASH_SOURCE[0]}")/simulator.txt"
synthesis="$(dirname "${BASH_SOURCE[0]}")/synthesis.txt"
# Packages among these that start a service when installed, with the service's name. Freeport only
# measures and tests the programs: none of these services may start, now or with the system.
services=(
    "redis-server=redis-server"
    "nginx-light=nginx"
    "memcached=memcached"
    "iperf3=iperf3"
    "openssh-server=ssh"
    "openvswitch-switch=openvswitch-switch"
    "postgresql=postgresql"
    "etcd-server=etcd"
    "haproxy=haproxy"
    "lighttpd=lighttpd"
    "mosquitto=mosquitto"
    "rsync=rsync"
    "stunnel4=stunnel4"
    "varnish=varnish"
)
# Debian's packages run this file to ask whether a service may start.
policy=/usr/sbin/policy-rc.d
policy_mark="Written for a while by scripts/install.sh of Freeport"
oldest_cargo_minor=88
# The toolchain to install if there is no recent cargo.
rust=1.95.0
# The version of rustup, and the SHA-256 of its installer for each architecture, which
# static.rust-lang.org publishes as rustup-init.sha256. rustup compares each part of the toolchain
# with the hash in the release's manifest.
rustup=1.29.0
rustup_hashes=(
    "x86_64=4acc9acc76d5079515b46346a485974457b5a79893cfb01112423c89aeb5aa10"
    "aarch64=9732d6c5e2a098d3521fca8145d826ae0aaa067ef2385ead08e6feac88fa5792"
)
oldest_verilator_minor=30
# The builder of the book of docs/, from crates.io. Cargo compares the crate with the registry's
# checksum, and each dependency with that of the crate's own Cargo.lock (`--locked`).
mdbook=0.5.4
mdbook_folder="$HOME/.cache/freeport/mdbook"

is_there() {
    case "$1" in
        /*) compgen -G "$1" >/dev/null ;;
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
        echo "install.sh: there is no apt-get; install these packages yourself: ${missing[*]}" >&2
        return 1
    fi
    echo "install.sh: installing ${missing[*]}" >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    without_services "${missing[@]}"
}

# Installs packages and prevents their services from starting. A subshell, so that the earlier
# policy is restored however it ends.
without_services() (
    trap restore_policy EXIT
    trap 'exit 1' INT TERM HUP
    # Our own policy is still there if an earlier installation was killed.
    if [ -e "$policy" ] && ! grep -q "$policy_mark" "$policy"; then
        as_root mv "$policy" "$policy.before-freeport"
    fi
    printf '#!/bin/sh\n# %s\nexit 101\n' "$policy_mark" | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    trap 'disable_services "$@"; restore_policy' EXIT
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
)

restore_policy() {
    as_root rm -f "$policy"
    if [ -e "$policy.before-freeport" ]; then
        as_root mv "$policy.before-freeport" "$policy"
    fi
}

# Prevents the services of newly installed packages from starting with the system.
disable_services() {
    local entry package service
    for entry in "${services[@]}"; do
        package=${entry%%=*}
        service=${entry#*=}
        [[ " $* " == *" $package "* ]] || continue
        if command -v systemctl >/dev/null 2>&1; then
            as_root systemctl --quiet disable "$service.service" >/dev/null 2>&1 || true
        fi
        if [ -e "/etc/init.d/$service" ]; then
            as_root update-rc.d "$service" disable >/dev/null 2>&1 || true
        fi
    done
}

# Returns whether the cargo at $1 is recent enough for the workspace's edition.
is_new_enough() {
    local version
    version=$("$1" --version 2>/dev/null) || return 1
    [[ "$version" =~ ^cargo\ ([0-9]+)\.([0-9]+) ]] || return 1
    ((BASH_REMATCH[1] > 1 || BASH_REMATCH[2] >= oldest_cargo_minor))
}

# Downloads rustup's installer, and runs it only if its hash is the expected one. A subshell, so
# that the file is removed however it ends.
install_rust() (
    # The same order as in the Makefile's PATH, so that the cargo checked is the one used.
    PATH="$HOME/.cargo/bin:$PATH"
    ! is_new_enough cargo || return 0
    echo "install.sh: installing Rust $rust with rustup $rustup" >&2
    machine=$(uname -m)
    expected=""
    for entry in "${rustup_hashes[@]}"; do
        [ "${entry%%=*}" != "$machine" ] || expected=${entry#*=}
    done
    [ -n "$expected" ] || no_rust "this script has no hash of rustup for $machine"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 1' INT TERM HUP
    url="https://static.rust-lang.org/rustup/archive/$rustup/$machine-unknown-linux-gnu/rustup-init"
    curl --proto '=https' --tlsv1.2 -sSf -o "$folder/rustup-init" "$url" ||
        no_rust "$url cannot be downloaded"
    found=$(sha256sum <"$folder/rustup-init")
    found=${found%% *}
    [ "$found" = "$expected" ] ||
        no_rust "$url has SHA-256 $found, not $expected, and was not run"
    chmod +x "$folder/rustup-init"
    "$folder/rustup-init" -y --quiet --profile minimal --component rustfmt --component clippy \
        --default-toolchain "$rust" --no-modify-path </dev/null >/dev/null ||
        no_rust "rustup failed"
)

# Exits with the reason why Rust is missing, and the remedy.
no_rust() {
    echo "install.sh: $1. Install Rust 1.$oldest_cargo_minor or newer by" \
        "other means, with cargo on the PATH, rustfmt and clippy, and try again." >&2
    exit 1
}

# Returns whether there is a simulator that the build prefers to the one installed here.
has_simulator() {
    local version minor
    [ -z "${VERILATOR-}" ] || return 0
    version=$(verilator --version 2>/dev/null) || return 1
    [[ "$version" =~ ^Verilator\ ([0-9]+)\.([0-9]+) ]] || return 1
    minor=$((10#${BASH_REMATCH[2]}))
    ((BASH_REMATCH[1] > 5 || (BASH_REMATCH[1] == 5 && minor >= oldest_verilator_minor)))
}

# Installs the Python packages of the requirements file $1, unless this version is installed. $2 is
# the advice to print on a failure.
install_hardware_tool() {
    local tool installed
    tool=$(grep -m 1 -o '^[a-z][a-z-]*==[^ ]*' "$1")
    installed="$hardware_tools/installed-$tool"
    [ ! -e "$installed" ] || return 0
    echo "install.sh: installing $tool" >&2
    [ -x "$hardware_tools/bin/pip" ] || /usr/bin/python3 -m venv "$hardware_tools"
    if ! "$hardware_tools/bin/pip" install --quiet --disable-pip-version-check \
        --require-hashes --only-binary :all: --requirement "$1"; then
        echo "install.sh: $tool was not installed: it has no file for this machine, cannot be" \
            "downloaded, or its hash is not in $1. $2." >&2
        return 1
    fi
    touch "$installed"
}

# Builds mdBook without its web server, which needs most of its dependencies.
install_mdbook() (
    PATH="$HOME/.cargo/bin:$PATH"
    [ "$("$mdbook_folder/bin/mdbook" --version 2>/dev/null)" != "mdbook v$mdbook" ] || return 0
    echo "install.sh: installing mdBook $mdbook" >&2
    cargo install --quiet --locked mdbook --version "=$mdbook" --no-default-features \
        --features search --root "$mdbook_folder" || {
        echo "install.sh: mdBook was not installed; only \`make docs\` needs it." >&2
        return 1
    }
)

needed=("${to_build[@]}")
case "${1-}" in
    "") ;;
    --area) wants_area=1 ;;
    --docs)
        wants_docs=1
        needed=("gcc=gcc" "curl=curl" "ca-certificates=/etc/ssl/certs/ca-certificates.crt")
        ;;
    --demo) needed+=("${for_demo[@]}") ;;
    --test) needed+=("${for_demo[@]}" "${for_test[@]}") ;;
    --applications)
        needed+=("${for_demo[@]}" "${for_test[@]}" "${applications[@]}")
        # Python's own tests are in a package with the version in its name.
        if python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
            needed+=("libpython$python-testsuite=/usr/lib/python$python/test/test_socket.py")
        fi
        ;;
    *)
        echo "install.sh: the options are --demo, --test, --applications, --area and --docs" >&2
        exit 1
        ;;
esac
install_packages
install_rust
if [ -n "${wants_docs-}" ]; then
    install_mdbook
    exit
fi
has_simulator || install_hardware_tool "$simulator" \
    "Put Verilator 5.0$oldest_verilator_minor or newer on the PATH, or name it in VERILATOR"
[ -z "${wants_area-}" ] || install_hardware_tool "$synthesis" "Only \`make area\` needs it"
