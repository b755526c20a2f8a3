"""A control plane of real servers, on a loopback address of its own: etcd, API server, controllers and scheduler."""

import base64
import json
import random
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from tests.servers.api import Api, Denied, until
from tests.servers.certificates import Authority

ETCD, ETCD_PEERS, API_SERVER, CONTROLLERS, SCHEDULER = 20079, 20080, 20443, 20057, 20059
"""Ports, below those that the kernel gives to clients. The address is the control plane's own."""

SERVICES = "10.96.0.0/16"


class Server:
    """A process with its log."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)

    def alive(self) -> None:
        """Raises AssertionError with the end of the log for a server that has ended."""
        if (code := self.process.poll()) is not None:
            end = self.log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self.name} ended with {code}: {end}")

    def stop(self) -> None:
        """Ends the process at once: nobody reads its data again."""
        self.process.kill()
        self.process.wait()


class ControlPlane:
    """Servers from the folder `built`, with their data in `folder`. A context that ends with them."""

    def __init__(self, built: Path, folder: Path) -> None:
        self.built, self.folder = built, folder
        # nobody else of this machine listens on a random one of 16 million addresses
        numbers = random.SystemRandom()
        self.address = f"127.{numbers.randint(1, 254)}.{numbers.randint(0, 255)}.{numbers.randint(1, 254)}"
        self.url = f"https://{self.address}:{API_SERVER}"
        certificates = folder / "certificates"
        certificates.mkdir()
        self.authority = Authority(certificates)
        self.authority.server("server", self.address, "kubernetes.default.svc", "localhost")
        self.authority.user("admin", "system:masters")
        self.authority.key("accounts")
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(self._kubeconfig()))
        self.api = Api(self.url, self.authority, "admin")
        self.servers: dict[str, Server] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends all servers, the first one last."""
        for server in reversed(self.servers.values()):
            server.stop()

    def start(self, name: str, *arguments: str, before: tuple[str, ...] = ()) -> Server:
        """Starts the program `name`, behind a command that starts it if there is one."""
        self.servers[name] = Server(name, [*before, str(self.built / "bin" / name), *arguments], self.folder)
        return self.servers[name]

    def alive(self) -> None:
        """Raises AssertionError if a server has ended."""
        for server in self.servers.values():
            server.alive()

    def file(self, name: str) -> str:
        """Path of a certificate or key."""
        return str(self.authority.folder / name)

    def _start(self) -> None:
        store, peers = f"http://{self.address}:{ETCD}", f"http://{self.address}:{ETCD_PEERS}"
        self.start(
            "etcd",
            *("--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
            *("--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", peers),
            *("--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"),
        )
        self.start(
            "kube-apiserver",
            *(f"--etcd-servers={store}", f"--bind-address={self.address}", f"--advertise-address={self.address}"),
            *(
                f"--secure-port={API_SERVER}",
                "--endpoint-reconciler-type=none",
                f"--client-ca-file={self.file('ca.crt')}",
            ),
            *(f"--tls-cert-file={self.file('server.crt')}", f"--tls-private-key-file={self.file('server.key')}"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-cluster-ip-range={SERVICES}"),
            *(f"--service-account-key-file={self.file('accounts.pub')}", "--authorization-mode=RBAC"),
            *(f"--service-account-signing-key-file={self.file('accounts.key')}", "--allow-privileged=true"),
        )
        until(self._ready, "an API server that is ready", self.alive)
        common = (f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", f"--bind-address={self.address}")
        self.start(
            "kube-controller-manager",
            *common,
            *(f"--secure-port={CONTROLLERS}", f"--service-account-private-key-file={self.file('accounts.key')}"),
            *(f"--root-ca-file={self.file('ca.crt')}", "--use-service-account-credentials=true"),
        )
        self.start("kube-scheduler", *common, f"--secure-port={SCHEDULER}")
        until(self._accounts, "a service account for pods, from the controller manager", self.alive)

    def _ready(self) -> bool:
        try:
            return bool(self.api.call("GET", "/readyz") == "ok")
        except (Denied, requests.ConnectionError):
            return False

    def _accounts(self) -> bool:
        try:
            return bool(self.api.get("v1", "ServiceAccount", "default", "default"))
        except Denied:
            return False

    def _kubeconfig(self) -> dict[str, Any]:
        cluster = {"server": self.url, "certificate-authority": self.file("ca.crt")}
        user = {"client-certificate": self.file("admin.crt"), "client-key": self.file("admin.key")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }

    @property
    def authority_bundle(self) -> str:
        """The authority's certificate, as webhook configurations hold it."""
        return base64.b64encode(self.authority.certificate.read_bytes()).decode()
