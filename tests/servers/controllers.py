"""Kueue and JobSet outside the cluster that they serve: their charts' objects without pods, webhooks on loopback."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.servers.api import Api, Object, until
from tests.servers.control_plane import ControlPlane

PORTS = {"kueue": (20643, 20681), "jobset": (20743, 20781)}
"""Ports of a controller's webhooks and health."""

POD_KINDS = {"Deployment", "PodDisruptionBudget", "Secret", "ServiceMonitor", "APIService", "Service", "Certificate"}
"""Kinds of a chart that make no sense without pods."""

CRD = "CustomResourceDefinition"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

_ENTER = 'mount -t overlay overlay -o "$1" /etc; shift; exec "$@"'
_ROOT = () if os.geteuid() == 0 else ("--user", "--map-root-user")
IN_ITS_OWN_ETC = ("unshare", *_ROOT, "--mount", "bash", "-euc", _ENTER, "enter")
"""Runs a command in a mount namespace with changes to /etc: Kueue reads certificates of its metrics below it."""


def start_kueue(plane: ControlPlane, values: Mapping[str, Any]) -> None:
    """Kueue, with the configuration that its chart renders from `values`."""
    certificates = plane.folder / "etc" / "kueue" / "metrics" / "certs"
    certificates.mkdir(parents=True)
    (plane.folder / "work").mkdir()
    for end in ("crt", "key"):
        (certificates / f"tls.{end}").write_bytes(Path(plane.file(f"server.{end}")).read_bytes())
    overlay = f"lowerdir=/etc,upperdir={plane.folder / 'etc'},workdir={plane.folder / 'work'}"
    # the visibility API is another server, which nothing here asks
    without = ("--feature-gates=VisibilityOnDemand=false",)
    _start(plane, "kueue", "kueue-system", values, without, (*IN_ITS_OWN_ETC, overlay))


def start_jobset(plane: ControlPlane, values: Mapping[str, Any]) -> None:
    """JobSet, with the configuration that its chart renders from `values`."""
    _start(plane, "jobset", "jobset-system", values, (), ())


def _start(
    plane: ControlPlane,
    name: str,
    namespace: str,
    values: Mapping[str, Any],
    arguments: tuple[str, ...],
    before: tuple[str, ...],
) -> None:
    helm, chart = plane.built / "bin" / "helm", plane.built / "charts" / name
    objects = list(rendered(helm, chart, name, namespace, values))
    (configuration,) = (
        text
        for obj in objects
        if obj["kind"] == "ConfigMap"
        for text in obj["data"].values()
        if "Configuration" in text
    )
    file = plane.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(outside(plane, name, yaml.safe_load(configuration))))
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    webhooks = []
    for obj in objects:
        if obj["kind"] in POD_KINDS:
            continue
        _redirect(obj, f"https://{plane.address}:{PORTS[name][0]}", plane.authority_bundle)
        (webhooks.append if obj["kind"] in WEBHOOKS else plane.api.apply)(obj)
    established(plane.api, [obj for obj in objects if obj["kind"] == CRD])
    environment = ("env", f"KUBECONFIG={plane.kubeconfig}")
    server = plane.start(name, "--config", str(file), *arguments, before=(*before, *environment))
    until(lambda: _answers(plane, name), f"{name} that is ready", server.alive)
    # last, since the API server asks them about every job
    for obj in webhooks:
        plane.api.apply(obj)


def rendered(helm: Path, chart: Path, name: str, namespace: str, values: Mapping[str, Any]) -> Iterator[Object]:
    """Objects of a chart, CRDs among them."""
    command = [str(helm), "template", name, str(chart), "--namespace", namespace, "--include-crds"]
    ran = subprocess.run(
        [*command, "--kube-version", "1.35.0", "--values", "-"],
        input=yaml.safe_dump(dict(values)),
        text=True,
        capture_output=True,
        check=True,
    )
    yield from (obj for obj in yaml.safe_load_all(ran.stdout) if obj)


def outside(plane: ControlPlane, name: str, configuration: Object) -> Object:
    """A controller's configuration with what differs outside the cluster: addresses, certificates, one replica."""
    webhooks, health = PORTS[name]
    served = {"host": plane.address, "port": webhooks, "certDir": str(plane.folder / name / "certificates")}
    certificates = Path(served["certDir"])
    certificates.mkdir(parents=True)
    for end in ("crt", "key"):
        (certificates / f"tls.{end}").write_bytes(Path(plane.file(f"server.{end}")).read_bytes())
    return {
        **configuration,
        "webhook": served,
        "health": {**configuration.get("health", {}), "healthProbeBindAddress": f"{plane.address}:{health}"},
        "metrics": {**configuration.get("metrics", {}), "bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }


def _redirect(obj: Object, url: str, bundle: str) -> None:
    """Sends the API server's calls for webhooks and conversions to `url`."""
    configurations = [webhook["clientConfig"] for webhook in obj.get("webhooks", ())]
    conversion = obj["spec"].get("conversion", {}).get("webhook") if obj["kind"] == CRD else None
    configurations += [conversion["clientConfig"]] if conversion else []
    for each in configurations:
        path = each.pop("service", {}).get("path", "/convert" if each is (conversion or {}).get("clientConfig") else "")
        each |= {"url": f"{url}{path}", "caBundle": bundle}


def established(api: Api, definitions: Iterable[Object]) -> None:
    """Waits until the server serves the kinds of CRDs."""
    for definition in definitions:
        name = definition["metadata"]["name"]
        until(lambda name=name: _established(api, name), f"the CRD {name}")


def _established(api: Api, name: str) -> bool:
    conditions = api.get("apiextensions.k8s.io/v1", CRD, name).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _answers(plane: ControlPlane, name: str) -> bool:
    try:
        return requests.get(f"http://{plane.address}:{PORTS[name][1]}/readyz", timeout=10).ok
    except requests.ConnectionError:
        return False
