#!/bin/bash
set -euo pipefail
echo first
