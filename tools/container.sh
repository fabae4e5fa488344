#!/usr/bin/env bash
# Builds and runs the container of examples/serve without a daemon and without a registry of images: by buildah, on a
# base image that is made of Debian's packages under the name that the container file asks for.
# Usage, as root: tools/container.sh
# Needs buildah and mmdebstrap (Debian: apt-get install --no-install-recommends buildah mmdebstrap). Takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
image=docker.io/library/python:3.12-slim
# Images are kept in a folder of their own, so that the tests find none of them by themselves.
kept="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/containers"
mkdir -p "$kept"
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' "$kept" "$kept" > "$kept/storage.conf"
export CONTAINERS_STORAGE_CONF="$kept/storage.conf" BUILDAH_ISOLATION=chroot
if ! buildah inspect --type image $image > /dev/null 2>&1; then
    folder=$(mktemp -d)
    trap 'rm -r "$folder"' EXIT
    # Python 3.11, Debian 12's. Its pip must install without an environment, and trust what this machine trusts.
    mmdebstrap --variant=apt --include=python3,python3-pip,python-is-python3,ca-certificates bookworm "$folder/root.tar"
    cp /etc/ssl/certs/ca-certificates.crt "$folder"
    cat > "$folder/Containerfile" <<'LINES'
FROM scratch
ADD root.tar /
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
COPY ca-certificates.crt /etc/ssl/certs/
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
LINES
    buildah build --tag $image "$folder"
fi
exec .venv/bin/python -m pytest -q -p no:cacheprovider --nightly tools/tests/test_container.py
