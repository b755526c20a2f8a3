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

import heapq
import itertools
import os
import re
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE_BYTES, USER_BYTES = 1_000_000, 8_000_000
USER_FILES = 200
USER_SAMPLES, ALL_SAMPLES = 2_500, 5_000
cache, lock = {}, threading.Lock()
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n]){0,200}"'
SAMPLE = re.compile(
    r"((?:training|nccl)_[a-z0-9_]{1,100})"
    rf"(?:\{{(?:{LABEL}(?:, ?{LABEL}){{0,30}},?)?\}})?"
    r" +(?:[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?|[+-]?[Ii]nf|NaN)"
)


def files(folder):
    """Path and status of the newest files of each user, of as many users as there are."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone
            if entry.name.endswith(".prom") and stat.S_ISREG(status.st_mode) and status.st_size <= FILE_BYTES:
                found.setdefault(status.st_uid, []).append((status.st_mtime_ns, entry.path))
    for user, own in found.items():
        yield user, [path for _, path in heapq.nlargest(USER_FILES, own)]


def samples_of(path, user):
    """Samples of a file; from the cache if it did not change, for most users write less often than the agent asks."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return 0, []  # a link, another user's secret, or gone
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES or status.st_uid != user:
            return 0, []
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        if cache.get(path, (None,))[0] != key:
            text = os.read(opened, FILE_BYTES).decode("utf-8", errors="ignore")
            matches = (SAMPLE.fullmatch(line.strip()) for line in text.splitlines())
            cache[path] = key, [(found[1], found[0]) for found in itertools.islice(filter(None, matches), USER_SAMPLES)]
        return status.st_size, cache[path][1]
    finally:
        os.close(opened)


def samples(folder):
    """Lines of samples by metric. Users take turns: what is above the limit of all is cut from those who have most."""
    of_user, seen = {}, set()
    for user, paths in files(folder):
        own, size = of_user.setdefault(user, []), 0
        for path in paths:
            if size > USER_BYTES or len(own) >= USER_SAMPLES:
                break
            seen.add(path)
            read, lines = samples_of(path, user)
            size += read
            own += lines
    for path in set(cache) - seen:
        del cache[path]
    left, found = ALL_SAMPLES, {}
    for number, own in enumerate(sorted(of_user.values(), key=len)):
        share = min(left // (len(of_user) - number), USER_SAMPLES)
        for name, line in own[:share]:
            found.setdefault(name, []).append(line)
        left -= len(own[:share])
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
        with lock:
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
