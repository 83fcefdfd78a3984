#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installs the build below a folder such as /usr/local: the command into bin/, and the sockets
# library, which `freeport exec` finds there, into lib/freeport/. Debugging information is put
# beside each, in a file with the extension .debug, where debuggers look for it. Completions for
# bash, zsh and fish and the manual pages go into share/. The systemd unit goes into
# lib/systemd/system/, and is neither enabled nor started.
#
#   install-built.sh FOLDER [BUILT]     BUILT is target/dist unless it is given
#
# PREFIX is the folder's location when the command runs, if that is another one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:?"install-built.sh: name the folder, such as /usr/local"}
built=${2:-target/dist}
prefix=$(realpath -sm "${PREFIX:-$folder}")

# Installs the file $1 as $2, with the mode $3.
install_stripped() {
    local target=$2
    install -D -m 644 "$1" "$target.debug"
    objcopy --only-keep-debug "$target.debug"
    install -D -m "$3" "$1" "$target.new"
    objcopy --strip-debug "$target.new"
    # The link names a file in the same folder.
    (cd "$(dirname "$target")" &&
        objcopy --add-gnu-debuglink="$(basename "$target").debug" "$(basename "$target").new")
    # Running programs keep the file that they have open.
    mv -f "$target.new" "$target"
    echo "$target ($(du -h "$target" | cut -f 1); debugging information beside it:" \
        "$(du -h "$target.debug" | cut -f 1))"
}

install_stripped "$built/freeport" "$folder/bin/freeport" 755
install_stripped "$built/libfreeport_preload.so" \
    "$folder/lib/freeport/libfreeport_preload.so" 644

# Prints the completion script of the shell $1 into the file $2.
install_completions() {
    mkdir -p "$(dirname "$2")"
    "$built/freeport" completions "$1" > "$2.new"
    chmod 644 "$2.new"
    mv -f "$2.new" "$2"
    echo "$2"
}

share="$folder/share"
install_completions bash "$share/bash-completion/completions/freeport"
install_completions zsh "$share/zsh/site-functions/_freeport"
install_completions fish "$share/fish/vendor_completions.d/freeport.fish"
"$built/freeport" man --out "$share/man/man1"
echo "$share/man/man1"

unit="$folder/lib/systemd/system/freeport-node.service"
install -D -m 644 packaging/freeport-node.service "$unit.new"
sed -i "s|^ExecStart=@BIN@|ExecStart=$prefix/bin|" "$unit.new"
mv -f "$unit.new" "$unit"
echo "$unit"
