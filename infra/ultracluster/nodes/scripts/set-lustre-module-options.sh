#!/bin/bash
# Sets options of Lustre's kernel modules, which are read when the modules are loaded: "MODULE OPTION=VALUE" each.
set -euo pipefail
mkdir -p /etc/modprobe.d
printf 'options %s\n' "$@" > /etc/modprobe.d/lustre-tuning.conf
