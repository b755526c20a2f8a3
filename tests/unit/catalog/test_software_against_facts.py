"""Charts are pinned to the newest versions of the facts. Needs the facts, which are stored beside the checkout."""

import re
from pathlib import Path

import pytest

from tests.kubernetes.helm import RENDERED
from ultracluster.catalog.eks import DRA_KUBERNETES, HUGE_PAGES_2MI, HUGE_PAGES_REQUEST, TIERS, ULTRASERVER_KUBERNETES
from ultracluster.catalog.software import addons, charts, manifests

FACTS = Path(__file__).parents[3].parent / "shared" / "facts" / "eks-gpu.md"

pytestmark = pytest.mark.skipif(not FACTS.exists(), reason="the facts on EKS are not beside the checkout")

TEXT = FACTS.read_text("utf-8") if FACTS.exists() else ""
STACK = TEXT.partition("\n## 3. ")[2].partition("\n## 4. ")[0]
ROWS = [line.strip("|").split("|") for line in STACK.splitlines() if line.startswith("| ")]
ELSEWHERE = {"karpenter": "### 2.6 Karpenter"}
"""Charts that a heading describes instead of a row of section 3."""
NOT_IN_FACTS = {"prometheus-node-exporter", "kube-state-metrics", "fluent-bit"}
"""Community charts without a version in the facts: their repositories hold it, and Helm renders them in other tests."""


def row(name):
    """The cells of the one row that installs `name`: component, install, version, namespace."""
    found = [
        [cell.strip() for cell in cells]
        for cells in ROWS
        if len(cells) > 4 and re.search(rf"(`|/){re.escape(name)}(`|$|[ ,)])", cells[1].strip())
    ]
    assert len(found) == 1, f"{len(found)} rows install {name}"
    return found[0][:4]


@pytest.mark.parametrize("name", [name for name in charts if name not in NOT_IN_FACTS | ELSEWHERE.keys()])
def test_chart(name):
    _, install, version, namespace = row(name)
    chart = charts[name]
    assert re.search(rf"(?<![\w.]){re.escape(chart.version)}(?![\w.]*\d)", version)
    assert chart.repository in install or (chart.repository.endswith("/eks-charts") and "eks-charts" in install)
    assert chart.namespace in re.findall(r"[a-z0-9-]+", namespace)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_chart_of_a_heading(name):
    heading = next(line for line in TEXT.splitlines() if line.startswith(ELSEWHERE[name]))
    assert f"v{charts[name].version}" in heading
    assert f"{charts[name].repository}," in heading


def test_helm_renders_the_pinned_charts_without_facts():
    assert set(RENDERED) & set(charts) >= NOT_IN_FACTS
    assert not any(NOT_IN_FACTS & set(re.findall(r"[a-z0-9-]+", cells[1])) for cells in ROWS if len(cells) > 4)


def test_mpi_operator_comes_as_a_manifest():
    cells = next(cells for cells in ROWS if cells[0].strip() == "MPI Operator")
    assert "manifest only" in cells[1]
    assert manifests["mpi-operator"].version in cells[2]
    assert manifests["mpi-operator"].namespace == cells[3].strip()


@pytest.mark.parametrize("name", [name for name in addons if "csi" in name and name != "aws-ebs-csi-driver"])
def test_service_accounts_of_storage(name):
    line = next(line for line in STACK.splitlines() if f"add-on `{name}`" in line)
    assert f"SA {addons[name].service_account}" in line


def test_figures_of_eks():
    assert f"pre-allocate {HUGE_PAGES_2MI}\u00d72 MiB" in TEXT
    assert f"hugepages-2Mi: {HUGE_PAGES_REQUEST}" in TEXT
    assert f"P6e-GB200: K8s ≥{ULTRASERVER_KUBERNETES}" in TEXT
    assert f"(`aws-dranet`, DRA, K8s ≥{DRA_KUBERNETES})" in TEXT
    assert "| control-plane tiers | standard, tier-xl, -2xl, -4xl, -8xl [BOTO]" in TEXT
    assert TIERS == ("standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl")


def test_the_service_account_of_the_ebs_driver():
    """EKS User Guide, "Amazon EBS CSI driver" (2026); the facts do not hold it."""
    assert addons["aws-ebs-csi-driver"].service_account == "ebs-csi-controller-sa"
