#!/usr/bin/env bash
# Builds wheel and sdist into dist/, checks them, and uses each as a user would: installed into a fresh environment, with
# `litecl devices` and the README's example. Then checks that a checkout without symbolic links refuses to be built.
# With --objects, also builds the wheel of objects compiled ahead (litecl_objects): beside it nothing is compiled for the
# model of `litecl sample`.
# Usage: tools/packages.sh PYTHON [--convert] [--verify] [--objects[=MACHINE]]
#   PYTHON     an interpreter with the packages of the extra `release`
#   --convert  install TensorFlow along with them, and run the example from its Keras model on
#   --objects  for all machines of tools/objects.py, which takes a minute of two cores each; MACHINE: for one alone, such
#              as `host`, to try it
#   --verify   run `litecl verify --quick` from each, too; the first compiles, the others take its programs
#   PYTHONS, in the environment: the interpreters to make fresh environments with (default: PYTHON)
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath --no-symlinks "$(command -v "$1")")
here=$PWD extra="" verify="" objects="" machines=()
for option in "${@:2}"; do
    case $option in
        --convert) extra="[convert]" ;;
        --verify) verify=yes ;;
        --objects) objects=yes ;;
        --objects=*) objects=yes machines=(--for "${option#*=}") ;;
        *) echo "unknown option: $option" >&2; exit 2 ;;
    esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH  # what is installed is what is used
export XDG_CACHE_HOME=$work/cache

rm -rf dist
"$python" -m build --outdir dist . > "$work/log" || { cat "$work/log" >&2; exit 1; }
"$python" -m twine check --strict dist/*
"$python" -m check_wheel_contents dist/*.whl
git ls-files converter delegate interpreter kernels_cl perf src tests/cases tests/random_graphs | grep -vE "^src/litecl/[a-z_]+$" \
    | sed -E "s,^(src/litecl|tests)/,," \
    | sort > "$work/expected"
"$python" -m zipfile --list dist/*.whl | sed -nE 's,^litecl/([^ ]+) .*,\1,p' | sort > "$work/found"
diff "$work/expected" "$work/found" || { echo "the wheel's files are not those of the checkout" >&2; exit 1; }

for made_with in ${PYTHONS:-$python}; do
    for package in dist/*.whl dist/*.tar.gz; do
        echo "== $package on $("$made_with" --version)"
        "$made_with" -m venv "$work/fresh"
        "$work/fresh/bin/python" -m pip install --quiet "$package$extra"
        (cd "$work" && fresh/bin/litecl devices && fresh/bin/python "$here/tools/readme_example.py")
        if [[ $verify ]]; then (cd "$work" && fresh/bin/python -m litecl verify --quick --keep-cache); fi
        rm -rf "$work/fresh"
    done
done

if [[ $objects ]]; then
    echo "== objects compiled ahead"
    compiled() { (cd "$work" && fresh/bin/python "$here/tools/compiled.py" sample/model.tflite 1); }
    "$python" -m venv "$work/fresh"
    "$work/fresh/bin/python" -m pip install --quiet dist/*.whl
    "$work/fresh/bin/litecl" sample "$work/sample" > /dev/null
    without=$(compiled)
    PYTHONPATH=tests "$python" -m tools.objects "$work/objects" "$work/sample/model.tflite" "${machines[@]}"
    "$python" -m build --wheel --outdir dist "$work/objects" > "$work/log" || { cat "$work/log" >&2; exit 1; }
    "$python" -m twine check --strict dist/litecl_objects-*.whl
    "$python" -m check_wheel_contents dist/litecl_objects-*.whl
    "$work/fresh/bin/python" -m pip install --quiet dist/litecl_objects-*.whl
    with=$(compiled)
    echo "files compiled for the sample: $without, and $with with $(ls -sh dist/litecl_objects-*.whl)"
    if [[ $without = 0 || $with != 0 ]]; then exit 1; fi
fi

echo "== a checkout without symbolic links"
mkdir "$work/plain"
git ls-files -z | grep -zvE "^src/litecl/[a-z_]+$" | xargs -0 cp --parents -t "$work/plain"
for link in converter delegate interpreter kernels_cl perf tests/cases tests/random_graphs; do
    echo "../../$link" > "$work/plain/src/litecl/${link#tests/}"
done
if "$python" -m build --wheel --outdir "$work/dist" "$work/plain" > "$work/log" 2>&1; then
    echo "it was built all the same" >&2
    exit 1
fi
grep -m 1 "symbolic links" "$work/log" || { cat "$work/log" >&2; exit 1; }
