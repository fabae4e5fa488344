#!/usr/bin/env bash
# Runs a Python of Debian for ARM (aarch64) with this checkout, by qemu-user: its packages, numpy and pyopencl among them,
# are unpacked into a folder of their own (0.6 GB; nothing is installed). There is no OpenCL driver: what is tried is what
# users of such an image are told. (PoCL does not find its files under qemu-user without a chroot.)
# With WHEELS, a folder of wheels, these take the place of the checkout and of Debian's packages; with ziglang's the device
# native is there. Programs that Python starts are emulated too, in a namespace of this command alone.
#   pip wheel --no-deps -w FOLDER . && pip download --only-binary=:all: --platform manylinux_2_28_aarch64 \
#       --platform manylinux2014_aarch64 --python-version 313 -d FOLDER ziglang numpy flatbuffers rich platformdirs \
#       threadpoolctl pyopencl
# Usage: [WHEELS=FOLDER] tools/arm.sh PYTHON'S ARGUMENTS, such as: -m litecl run MODEL
# Needs qemu-user; with WHEELS, user namespaces with binfmt_misc (Linux 6.7). Starting takes half a minute or more.
set -euo pipefail
cd "$(dirname "$0")/.."
base="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/arm"
root=$base/root apt=$base/apt
packages=(python3-numpy python3-pyopencl python3-flatbuffers python3-rich python3-platformdirs python3-threadpoolctl
    python3-jinja2 ocl-icd-libopencl1)
fetch() {
    mkdir -p "$apt"/{etc/apt/preferences.d,etc/apt/apt.conf.d,var/lib/apt/lists/partial,var/lib/dpkg,var/log}
    mkdir -p "$apt"/var/cache/apt/archives/partial "$root".new/usr/{bin,sbin,lib,lib64}
    : > "$apt/var/lib/dpkg/status"
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key arch=arm64] http://deb.debian.org/debian trixie main" > "$apt/etc/apt/sources.list"
    local options=(-q -o Dir="$apt" -o Dir::State::status="$apt/var/lib/dpkg/status"
        -o APT::Architecture=arm64 -o APT::Architectures::=arm64)
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install -y --download-only --no-install-recommends "${packages[@]}"
    for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root.new/$folder"; done
    for deb in "$apt"/var/cache/apt/archives/*.deb; do dpkg -x "$deb" "$root.new"; done
    rm -r "$apt"
    mv "$root.new" "$root"
}
[ -d "$root" ] || { rm -rf "$root.new"; fetch; }
mkdir -p "$base/none" "$base/home"
libraries=/usr/lib/aarch64-linux-gnu
export HOME=$base/home XDG_CACHE_HOME=$base/home/cache PYTHONHOME=/usr PYTHONPATH=$PWD/src PYTHONDONTWRITEBYTECODE=1
export OPENBLAS_NUM_THREADS=1 OCL_ICD_VENDORS=$base/none
if [ -n "${WHEELS:-}" ]; then
    site=$(mktemp -d) mounted=$(mktemp -d)
    trap 'rm -rf "$site" "$mounted"' EXIT
    for wheel in "$WHEELS"/*.whl; do env -u PYTHONHOME -u PYTHONPATH python3 -m zipfile -e "$wheel" "$site"; done
    chmod -f +x "$site/ziglang/zig" || true
    export PYTHONPATH=$site QEMU_LD_PREFIX=$root LD_LIBRARY_PATH= mounted
    elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    rule=":aarch64:M::$elf:$mask:$(command -v qemu-aarch64):F"
    export rule
    # shellcheck disable=SC2016  # expanded within the namespace
    unshare --user --map-root-user --mount bash -c '
        mount -t binfmt_misc none "$mounted" && printf %s "$rule" > "$mounted/register" && exec "$@"
    ' arm.sh "$root/usr/bin/python3.13" "$@"
    exit
fi
exec qemu-aarch64 -L "$root" -E "LD_LIBRARY_PATH=$libraries/blas:$libraries/lapack" "$root"/usr/bin/python3.13 "$@"
