#!/usr/bin/env bash
# Runs pytest, or a command of litecl, with the OpenCL runtime of a newer Debian. Its packages are unpacked into a folder of their own (0.8 GB;
# nothing is installed), in which the checkout's Python then runs, with the folders that it needs bound there: as root,
# or where users may make namespaces.
# Usage: tools/in_debian.sh SUITE PACKAGE... [NAME=VALUE...] -- PYTEST'S ARGUMENTS | litecl COMMAND...
set -euo pipefail
suite=$1
shift
packages=() settings=()
while [ "$1" != -- ]; do
    case $1 in *=*) settings+=("$1") ;; *) packages+=("$1") ;; esac
    shift
done
shift
module=(pytest --nightly -q -p no:cacheprovider)
[ "$1" != litecl ] || { module=(litecl); shift; }
cd "$(dirname "$0")/.."
# What Python's own modules link to comes along.
more=(ocl-icd-libopencl1 coreutils bash libexpat1 libssl3t64 libbz2-1.0 libsqlite3-0 libuuid1 libreadline8t64 libncursesw6)
root=$(tools/debian_root.sh "$suite" "${packages[@]}" "${more[@]}")
# Bound at their own paths: the checkout, the environment, Python itself, and the folder of models beside the checkout.
python=.venv/bin/python
shared=$(realpath -q ../shared || true)
paths=(/proc /dev /sys "$PWD" "$(realpath .venv)" "$($python -c 'import sys; print(sys.base_prefix)')" $shared)
[ "$($python -c 'import sys; print(sys.base_prefix)')" != /usr ] || { echo "needs a Python outside /usr" >&2; exit 2; }
# PoCL of PyPI comes with pyopencl, which finds it by this file.
own=$($python -c 'import pathlib, pyopencl; print(pathlib.Path(pyopencl.__file__).resolve().parent / ".libs/pocl.icd")')
home=$(dirname "$root")/home
mkdir -p "$home"
given="${settings[*]}"
export root own home given
as_root=()
[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
# shellcheck disable=SC2016  # expanded within the namespace
exec unshare "${as_root[@]}" --mount bash -c '
    count=$1; shift
    for path in "${@:1:count}" "$home"; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
    shift "$count"
    mkdir -p "$root/tmp"
    [ ! -e "$root$own" ] || mount --bind /dev/null "$root$own"
    exec chroot "$root" /usr/bin/env HOME="$home" OCL_ICD_VENDORS=/etc/OpenCL/vendors PYTHONPATH="${PYTHONPATH:-}" $given \
        /bin/bash -c "cd \"\$0\" && exec .venv/bin/python -m \"\$@\"" "$PWD" "$@"
' bash ${#paths[@]} "${paths[@]}" "${module[@]}" "$@"
