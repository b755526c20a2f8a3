#!/bin/bash
# Kernel limits that this site sets on every node: memory maps for frameworks that map many files.
set -euo pipefail
printf 'vm.max_map_count = 1048576\n' > /etc/sysctl.d/90-site.conf
sysctl --quiet --load=/etc/sysctl.d/90-site.conf
echo "$ULTRACLUSTER_NODE_GROUP: vm.max_map_count is $(sysctl --values vm.max_map_count)"
