#!/usr/bin/env bash
# clang 22.1.8 (ziglang 0.17.1): #embed, which is for binary files, refuses those that begin like text in another
# encoding: weights whose first float32 is 1.0078 (fe ff 80 3f) do not compile. Data that begin like UTF-8's mark are
# embedded whole. With another byte before the data, and clang::offset(1), all of them are.
#
# Seen, on x86-64 (the script fails if it changes):
#   clang version 22.1.8
#   fe ff 80 3f: fatal error: UTF-16 (BE) byte order mark detected, but encoding is not supported
#   ff fe 80 3f: fatal error: UTF-16 (LE) byte order mark detected, but encoding is not supported
#   ef bb bf 3f: 239, 187, 191, 63
#   00 fe ff 80 3f, from its second byte: 254, 255, 128, 63

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ziglang==0.17.1
cd "$folder"
export ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/cache
clang() { "$folder/venv/bin/python" -m ziglang clang "$@"; }

embedded() { # BYTES [PARAMETER]: the numbers, or the error
    printf "$(printf '\\x%s' $1)" >weights
    printf 'const unsigned char weights[] = {\n#embed "weights" %s\n};\n' "${2:-}" >model.c
    { clang -std=c23 -E -P model.c 2>&1 || true; } |
        grep -oE '[0-9]+(, [0-9]+)+|fatal error.*' | sed "s# in '.*/weights'##"
}

clang --version | grep -o 'clang version [0-9.]*'
marked="byte order mark detected, but encoding is not supported"
big=$(embedded "fe ff 80 3f") little=$(embedded "ff fe 80 3f") eight=$(embedded "ef bb bf 3f")
after=$(embedded "00 fe ff 80 3f" "clang::offset(1)")
printf '%s\n' "fe ff 80 3f: $big" "ff fe 80 3f: $little" "ef bb bf 3f: $eight"
printf '%s\n' "00 fe ff 80 3f, from its second byte: $after"
[ "$big" = "fatal error: UTF-16 (BE) $marked" ]
[ "$little" = "fatal error: UTF-16 (LE) $marked" ]
[ "$eight" = "239, 187, 191, 63" ]
[ "$after" = "254, 255, 128, 63" ]
