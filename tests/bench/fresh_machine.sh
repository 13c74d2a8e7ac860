#!/usr/bin/env bash
# Does all that stands in this checkout's HEAD work on a machine that has nothing? Makes a minimal root of each release
# with debootstrap, sets it up by ci/bootstrap --dev, and starts in it: the command, an import of every module, the gate,
# and all tests. As root, with debootstrap, the network and 5 GB: tests/bench/fresh_machine.sh [RELEASE...]
# Every mount lies in a mount namespace of its own and ends with it; the roots are deleted.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

if [[ ${1:-} != --inside ]]; then
    releases=("$@")
    ((${#releases[@]})) || releases=(bookworm trixie)
    base=$(mktemp -d)
    trap 'rm -rf --one-file-system "$base"' EXIT
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^Debian //p' | grep -v security | head -n 1)
    for release in "${releases[@]}"; do
        printf '== %s\n' "$release"
        debootstrap --variant=minbase "$release" "$base/$release" "$mirror" >"$base/debootstrap.log" 2>&1 ||
            { tail -n 3 "$base/debootstrap.log" && exit 2; }
        unshare --mount --propagation private -- "${BASH_SOURCE[0]}" --inside "$base/$release"
    done
    exit 0
fi

root=$2
mount --bind "$root" "$root" # `ip netns exec` wants / to be a mount
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --rbind /dev "$root/dev"
mkdir -p "$root/run/pdrgate" /run/pdrgate "$root/root/checkout"
mount --bind /run/pdrgate "$root/run/pdrgate" # one run at a time on this machine, wherever it was started
# What makes the network of this machine reachable, and no more: names, apt's own settings, pip's certificates.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
inside=(env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin)
if [[ -n ${PIP_CERT:-} ]]; then
    cp "$PIP_CERT" "$root/etc/pip.crt"
    inside+=(PIP_CERT=/etc/pip.crt)
fi
inside+=(chroot "$root")
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service is started
chmod +x "$root/usr/sbin/policy-rc.d"
git -C "$checkout" archive HEAD | tar -x -C "$root/root/checkout"

"${inside[@]}" /root/checkout/ci/bootstrap --dev
"${inside[@]}" /root/checkout/ci/bootstrap --dev # has nothing to do, and says nothing
"${inside[@]}" /root/checkout/.venv/bin/pdrgate --version
"${inside[@]}" /root/checkout/.venv/bin/python -c '
import importlib, pkgutil, PdrGate, pdrgate
modules = [module.name for module in pkgutil.walk_packages(pdrgate.__path__, "pdrgate.")]
for name in modules:
    importlib.import_module(name)
print(len(modules), "modules")
'
# Any verdict will do, on a machine that does other things too, but that the testbed or a tool failed.
{ "${inside[@]}" /root/checkout/ci/gate --profile smoke --wait "10 min" --output /root/results || true; } |
    grep -E '^(NO_BASELINE|UNSTABLE|INCONCLUSIVE|GENERATOR_LIMITED|DISTURBED): '
"${inside[@]}" /root/checkout/ci/test | tail -n 40
