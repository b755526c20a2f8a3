#!/bin/bash
# Keeps the kernel, and with it the kernel modules of Lustre and EFA, at the version of the image.
# Modules are built for a range of kernels; an unattended upgrade to another one would leave the node without them.
set -euo pipefail

if command -v apt-mark >/dev/null; then
  mapfile -t packages < <(dpkg-query --show --showformat='${Package}\n' 'linux-*' 'lustre-client-*' 2>/dev/null |
    grep -E '^(linux-(aws|image|headers|modules)|lustre-client)' || true)
  if [ "${#packages[@]}" -gt 0 ]; then
    # it fails while an unattended upgrade holds dpkg's lock
    for _ in $(seq 60); do
      if apt-mark hold "${packages[@]}"; then
        exit
      fi
      sleep 10
    done
    exit 1
  fi
else
  grep -q '^excludepkgs=.*kernel' /etc/dnf/dnf.conf || echo 'excludepkgs=kernel*,lustre-client*' >> /etc/dnf/dnf.conf
fi
