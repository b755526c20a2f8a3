#!/bin/bash
# Serves the metrics that jobs write to files *.prom in a folder, to the metrics agent of the node, by a systemd service.
# Every user may write there, so the program trusts no content: see below. Node exporter does not read the folder.
set -euo pipefail
folder=/var/lib/node_exporter/jobs
mkdir -p "$folder" /opt/ultracluster
chmod 1777 "$folder"
cat > /opt/ultracluster/job-metrics <<'SCRIPT'
"""Serves metrics of training and NCCL from files *.prom in the folder of argument 1, at the loopback port of argument 2.

Any user writes the files. So it reads regular files only, never waits for one, follows no link, passes on only lines that
are samples of these metrics, and stops at a number of bytes and samples of each user and of all users.
"""

import itertools
import os
import re
import stat
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE_BYTES, USER_BYTES = 1_000_000, 8_000_000
ENTRIES = 10_000
USER_SAMPLES, ALL_SAMPLES = 2_500, 5_000
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n]){0,200}"'
SAMPLE = re.compile(
    r"((?:training|nccl)_[a-z0-9_]{1,100})"
    rf"(?:\{{(?:{LABEL}(?:, ?{LABEL}){{0,30}},?)?\}})?"
    r" +(?:[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?|[+-]?[Ii]nf|NaN)"
)


def files(folder):
    """Owner and text of each file."""
    of_user = Counter()
    with os.scandir(folder) as entries:
        paths = [entry.path for entry in itertools.islice(entries, ENTRIES) if entry.name.endswith(".prom")]
    for path in paths:
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # a link, another user's secret, or gone
        try:
            status = os.fstat(opened)
            of_user[status.st_uid] += status.st_size
            if stat.S_ISREG(status.st_mode) and status.st_size <= FILE_BYTES and of_user[status.st_uid] <= USER_BYTES:
                yield status.st_uid, os.read(opened, FILE_BYTES).decode("utf-8", errors="ignore")
        finally:
            os.close(opened)


def samples(folder):
    """Lines of samples by metric, without those beyond the limits."""
    found, of_user = {}, Counter()
    for user, text in files(folder):
        for line in text.splitlines():
            sample = SAMPLE.fullmatch(line.strip())
            if sample and of_user[user] < USER_SAMPLES and sum(of_user.values()) < ALL_SAMPLES:
                of_user[user] += 1
                found.setdefault(sample[1], []).append(line.strip())
    return found


def exposition(folder):
    """Text format of Prometheus. Counters end in _total, the other metrics of the catalogue are gauges."""
    lines = []
    for name, of_metric in sorted(samples(folder).items()):
        lines += [f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}", *of_metric]
    return "".join(f"{line}\n" for line in lines)


class Handler(BaseHTTPRequestHandler):
    """Answers GET /metrics."""

    timeout = 5

    def do_GET(self):
        body = exposition(sys.argv[1]).encode() if self.path == "/metrics" else b""
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
SCRIPT
cat > /etc/systemd/system/job-metrics.service <<UNIT
[Unit]
Description=Metrics that jobs write
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/bin/python3 -IS /opt/ultracluster/job-metrics $folder 9101
User=ultracluster-metrics
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes
CapabilityBoundingSet=
ProtectProc=invisible
MemoryMax=256M
CPUQuota=50%
TasksMax=64
Restart=always
RestartSec=30s
Nice=10

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable job-metrics.service
systemctl start --no-block job-metrics.service
