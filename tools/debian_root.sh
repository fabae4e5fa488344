#!/usr/bin/env bash
# Unpacks a package of a newer Debian, or of one for another ARCHITECTURE, with all that it needs, into a folder of its
# own, and prints that folder. Nothing is installed.
# Usage: [ARCHITECTURE=armhf] tools/debian_root.sh SUITE PACKAGE...
set -euo pipefail
suite=$1 package=$2
shift
name=$suite
[ "$package" = pocl-opencl-icd ] || name=$suite-$package
architecture=${ARCHITECTURE:-}
[ -z "$architecture" ] || name=$name-$architecture
base="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/$name"
root=$base/root apt=$base/apt
# What is there was perhaps unpacked for fewer packages.
[ ! -d "$root" ] || [ "$(cat "$base/packages" 2> /dev/null)" != "$*" ] || { echo "$root"; exit; }
rm -rf "$root" "$root.new"
mkdir -p "$apt"/{etc/apt/preferences.d,etc/apt/apt.conf.d,var/lib/apt/lists/partial,var/lib/dpkg,var/log}
mkdir -p "$apt"/var/cache/apt/archives/partial "$root".new/usr/{bin,sbin,lib,lib64}
: > "$apt/var/lib/dpkg/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key${architecture:+ arch=$architecture}] http://deb.debian.org/debian $suite main" > "$apt/etc/apt/sources.list"
options=(-q -o Dir="$apt" -o Dir::State::status="$apt/var/lib/dpkg/status")
[ -z "$architecture" ] || options+=(-o APT::Architecture="$architecture" -o APT::Architectures::="$architecture")
{
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install -y --download-only --no-install-recommends "$@"
    for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root.new/$folder"; done
    for deb in "$apt"/var/cache/apt/archives/*.deb; do dpkg -x "$deb" "$root.new"; done
    ldconfig -r "$root.new"
} >&2
rm -r "$apt"
mv "$root.new" "$root"
echo "$*" > "$base/packages"
echo "$root"
