#!/bin/bash
# Allocates at least $1 huge pages of 2 MiB at every boot, which AWS's EFA samples request: the kubelet counts them when
# it starts. By size instead of vm.nr_hugepages, because the default size is 512 MiB on arm64 kernels with 64 KiB pages.
set -euo pipefail
pages=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
if [ "$(cat "$pages")" -lt "$1" ]; then
  echo "w $pages - - - - $1" > /etc/tmpfiles.d/huge-pages.conf
  systemd-tmpfiles --create /etc/tmpfiles.d/huge-pages.conf
fi
if [ "$(cat "$pages")" -lt "$1" ]; then
  echo "only $(cat "$pages") of $1 huge pages; pods that ask for all of them do not fit" >&2
fi
