"""What a real Prometheus agent with the generated settings sends for one P5 node."""

import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from tests.telemetry.engines import STARTS_IN, free_port
from tests.telemetry.fake_exporter import serving
from tests.telemetry.load import node_texts
from ultracluster.catalog import catalog
from ultracluster.telemetry.agent import MAX_SAMPLES_PER_SEND, agent_configuration
from ultracluster.telemetry.budget import AMP, SERIES_BYTES, Fleet, series_of_node

FLEET = Fleet(1, catalog["p5.48xlarge"], "pcs")
LONG = {
    "node": "ip-10-20-130-240",
    "instance_type": "p5.48xlarge",
    "node_group": "train-long-name-1234",
    "team": "foundation-models",
    "workload": "123456",
}
"""Labels of a target as long as real ones."""


class Receiver:
    """A server that takes remote writes and counts them, in place of AMP."""

    def __init__(self, refuse: int = 0) -> None:
        self.sizes: list[int] = []
        self.refused = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.refused < refuse:
                    outer.refused += 1
                    self.send_response(429)
                else:
                    outer.sizes.append(uncompressed(body))
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> "Receiver":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def uncompressed(body: bytes) -> int:
    """Size of a snappy block before compression, which its first bytes state."""
    size = shift = 0
    for byte in body:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size
    raise ValueError("not a snappy block")


@pytest.fixture(params=[0, 2], ids=["accepted", "throttled-twice"])
def received(request, engines, tmp_path):
    """What arrives of the first scrapes of a node."""
    with (
        Receiver(refuse=request.param) as receiver,
        serving({f"/{job}": text for job, text in node_texts(FLEET).items()}) as address,
    ):
        settings = yaml.safe_load(_filled(agent_configuration(str(tmp_path))))
        write = {**settings["remote_write"][0], "url": f"http://127.0.0.1:{receiver.server.server_address[1]}/"}
        write = {key: value for key, value in write.items() if key not in ("sigv4", "write_relabel_configs")}
        jobs = [
            {"job_name": job, "metrics_path": f"/{job}", "static_configs": [{"targets": [address], "labels": LONG}]}
            for job in ("dcgm", "node")
        ]
        file = tmp_path / "agent.yaml"
        file.write_text(yaml.safe_dump({"global": settings["global"], "remote_write": [write], "scrape_configs": jobs}))
        _run_agent(engines, file, tmp_path, receiver)
        yield receiver


def _filled(text: str) -> str:
    for name, value in {"INTERVAL": "3", "SLURM_INTERVAL": "60", "CLUSTER": "ultracluster-prod-abcdef12"}.items():
        text = text.replace(f"@{name}@", value)
    return text.replace("scrape_timeout: 10s", "scrape_timeout: 3s")


def _run_agent(engines, file, folder, receiver) -> None:
    listen = f"--web.listen-address=127.0.0.1:{free_port()}"
    command = [engines.programs / "prometheus", "--agent", f"--config.file={file}", listen]
    with (folder / "agent.log").open("w") as log:
        process = subprocess.Popen([*command, f"--storage.agent.path={folder / 'wal'}"], stdout=log, stderr=log)
        try:
            until = time.monotonic() + 2 * STARTS_IN
            while sum(size > 0 for size in receiver.sizes) < 2:
                assert time.monotonic() < until, (folder / "agent.log").read_text()[-2000:]
                assert process.poll() is None, (folder / "agent.log").read_text()[-2000:]
                time.sleep(0.2)
        finally:
            process.terminate()
            process.wait(STARTS_IN)


def test_no_request_is_larger_than_amp_accepts_even_before_compression(received):
    assert max(received.sizes) < AMP["request_bytes"]
    assert max(received.sizes) < MAX_SAMPLES_PER_SEND * SERIES_BYTES


def test_a_node_writes_more_than_one_request_and_fewer_than_its_budget(received):
    assert series_of_node(FLEET) > MAX_SAMPLES_PER_SEND
    assert len(received.sizes) >= 2
