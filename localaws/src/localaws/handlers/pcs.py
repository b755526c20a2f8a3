"""PCS: clusters, compute node groups and queues. Ref gives the ARN, `...:cluster/ID[/KIND/ID]`.

The API checks names, references and limits; its errors become status reasons.
"""

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row

_CLUSTER = "{ref/1}"


def _check(_: Context, old: Properties, new: Properties) -> None:
    """An update would clear an empty list, which the creation refuses."""
    for name, value in (new.get("SlurmConfiguration") or {}).items():
        if old and value == []:
            raise HandlerError(f"SlurmConfiguration.{name} is an empty list, which AWS PCS refuses; leave it out")


def _check_group(context: Context, old: Properties, new: Properties) -> Properties | None:
    """SpotOptions that are removed from a group which stays SPOT return to PCS's default."""
    _check(context, old, new)
    if "CustomLaunchTemplate" in old and "CustomLaunchTemplate" not in new:
        raise HandlerError("AWS::PCS::ComputeNodeGroup must keep customLaunchTemplate")
    if new.get("PurchaseOption") == "SPOT" and "SpotOptions" in old and "SpotOptions" not in new:
        return {**new, "SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
    return None


register(
    Row(
        type="AWS::PCS::Cluster",
        service="pcs",
        name=("Name", 40),
        ref="{arn}",
        ident={"clusterIdentifier": _CLUSTER},
        by_member="Scheduler SlurmConfiguration",
        resets={
            "SlurmConfiguration.Accounting": {"Mode": "NONE", "DefaultPurgeTimeInDays": -1},
            "SlurmConfiguration.CgroupCustomSettings": [],
            "SlurmConfiguration.ScaleDownIdleTimeInSeconds": 600,
            "SlurmConfiguration.SlurmCustomSettings": [],
            "SlurmConfiguration.SlurmRest": {"Mode": "NONE"},
            "SlurmConfiguration.SlurmdbdCustomSettings": [],
        },
        arn="{ref}",
        ready="ACTIVE",
        check=_check,
    ),
    Row(
        type="AWS::PCS::ComputeNodeGroup",
        service="pcs",
        name=("Name", 25),
        ref="{arn}",
        ident={"clusterIdentifier": _CLUSTER, "computeNodeGroupIdentifier": "{ref/}"},
        renames={"ClusterId": "clusterIdentifier", "CustomLaunchTemplate.TemplateId": "id"},
        by_member="SlurmConfiguration",
        resets={
            "AmiId": "",
            "NodeLifecycleActions": {"Stages": {}},
            "PurchaseOption": "ONDEMAND",
            "SlurmConfiguration.GresCustomSettings": [],
            "SlurmConfiguration.ScaleDownIdleTimeInSeconds": -1,  # as the cluster
            "SlurmConfiguration.SlurmCustomSettings": [],
            "SpotOptions": None,
        },
        arn="{ref}",
        ready="ACTIVE",
        check=_check_group,
    ),
    Row(
        type="AWS::PCS::Queue",
        service="pcs",
        name=("Name", 25),
        ref="{arn}",
        ident={"clusterIdentifier": _CLUSTER, "queueIdentifier": "{ref/}"},
        renames={"ClusterId": "clusterIdentifier"},
        by_member="SlurmConfiguration",
        resets={"ComputeNodeGroupConfigurations": [], "SlurmConfiguration.SlurmCustomSettings": []},
        arn="{ref}",
        ready="ACTIVE",
        check=_check,
    ),
)
