"""EKS figures against the API model, the minimum software of instance types and published facts."""

from datetime import date

import pytest
from botocore.session import get_session

from ultracluster.catalog import catalog
from ultracluster.catalog.eks import (
    DRA_KUBERNETES,
    HUGE_PAGES_2MI,
    HUGE_PAGES_REQUEST,
    IMAGE_DRIVER,
    KUBERNETES_VERSIONS,
    LOG_TYPES,
    NEWEST_TESTED,
    REPAIRS,
    TIERS,
    ULTRASERVER_KUBERNETES,
    access_policy,
    image_type,
    older,
)

API = get_session().get_service_model("eks")

SUPPORT = [
    # version, end of standard and of extended support: EKS User Guide, "Kubernetes release calendar" (2026)
    ("1.33", date(2026, 7, 29), date(2027, 7, 29)),
    ("1.34", date(2026, 12, 2), date(2027, 12, 2)),
    ("1.35", date(2027, 3, 27), date(2028, 3, 27)),
    ("1.36", date(2027, 8, 2), date(2028, 8, 2)),
]

AGENT_REPORTS = {46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
"""XIDs for which the node monitoring agent 1.7.0 sets a condition; others are events, which nothing repairs."""


def repair(reason):
    (found,) = [entry for entry in REPAIRS if entry.reason == reason]
    return found


@pytest.mark.parametrize(("version", "standard", "extended"), SUPPORT)
def test_support_ends(version, standard, extended):
    entry = KUBERNETES_VERSIONS[version]
    assert (entry.standard_support_ends, entry.extended_support_ends) == (standard, extended)


def test_the_calendar_names_every_version():
    assert list(KUBERNETES_VERSIONS) == [row[0] for row in SUPPORT]
    assert list(KUBERNETES_VERSIONS)[-1] == NEWEST_TESTED


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_an_image_release_is_of_its_kubernetes_version(version):
    patch, _, day = KUBERNETES_VERSIONS[version].image_release.partition("-")
    assert patch.rpartition(".")[0] == version
    assert date.fromisoformat(day) > date(2025, 11, 3), "P6e-GB200 needs the images of 2025-11-03 or newer"


@pytest.mark.parametrize("name", catalog)
def test_the_image_driver_supports_every_type(name):
    assert int(IMAGE_DRIVER.partition(".")[0]) >= int(catalog[name].software.nvidia_driver)


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
@pytest.mark.parametrize("accelerated", [True, False])
def test_the_api_knows_the_image_types(architecture, accelerated):
    name = image_type(architecture, accelerated=accelerated)
    assert name in API.shape_for("AMITypes").enum
    assert name.endswith("NVIDIA" if accelerated else "STANDARD")
    assert ("ARM_64" in name) == (architecture == "arm64")


def test_the_api_knows_the_tiers_and_the_logs():
    assert list(TIERS) == API.shape_for("ProvisionedControlPlaneTier").enum
    assert list(LOG_TYPES) == API.shape_for("LogType").enum


def test_versions_compare_as_numbers():
    assert older("1.9", "1.10")
    assert not older("1.10", "1.9")
    assert not older("1.33", "1.33")


def test_an_invalid_version_is_not_older():
    assert not older("latest", "1.33")


def test_dra_and_ultraservers_need_versions_that_eks_has():
    assert {DRA_KUBERNETES, ULTRASERVER_KUBERNETES} <= set(KUBERNETES_VERSIONS)
    assert older(ULTRASERVER_KUBERNETES, DRA_KUBERNETES)


def test_nodes_preallocate_the_huge_pages_that_pods_request():
    assert HUGE_PAGES_REQUEST.endswith("Mi")
    assert int(HUGE_PAGES_REQUEST.removesuffix("Mi")) <= HUGE_PAGES_2MI * 2


def test_access_policies_are_of_the_partition():
    arn = access_policy("aws-us-gov", "cluster_admin")
    assert arn == "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def test_the_api_accepts_every_repair():
    override = API.shape_for("NodeRepairConfigOverrides").members
    for entry in REPAIRS:
        assert entry.action in override["repairAction"].enum
        assert entry.wait_minutes >= override["minRepairWaitTimeMins"].metadata["min"]


def test_no_reason_has_two_repairs():
    reasons = [entry.reason for entry in REPAIRS]
    assert len(reasons) == len(set(reasons))


def test_repairs_are_of_xids_that_the_agent_reports_and_none_hides_another_fault():
    """The agent keeps the latest reason alone: one without an action would hide one that needs a repair."""
    assert {entry.reason for entry in REPAIRS} <= {f"NvidiaXID{xid}Error" for xid in AGENT_REPORTS}
    assert "NoAction" not in {entry.action for entry in REPAIRS}


def test_a_failed_remap_replaces_the_node_and_firmware_errors_reboot_it():
    assert repair("NvidiaXID64Error").action == "Replace"
    assert {repair(f"NvidiaXID{xid}Error").action for xid in (119, 120)} == {"Reboot"}
