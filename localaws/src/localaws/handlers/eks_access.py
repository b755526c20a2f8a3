"""EKS: add-ons, access entries, pod identity associations and capabilities."""

from localaws.resources import Context, Properties, lower_first
from localaws.rows.handler import register
from localaws.rows.row import Row


def _set_policies(context: Context, old: Properties, new: Properties) -> None:
    """Each access policy has a call of its own."""
    eks, place = context.client("eks"), {"clusterName": new["ClusterName"], "principalArn": new["PrincipalArn"]}
    wanted = [policy["PolicyArn"] for policy in new.get("AccessPolicies") or ()]
    for policy in new.get("AccessPolicies") or ():
        eks.associate_access_policy(**place, **lower_first(policy))
    for policy in old.get("AccessPolicies") or ():
        if policy["PolicyArn"] not in wanted:
            eks.disassociate_access_policy(**place, policyArn=policy["PolicyArn"])


register(
    Row(
        type="AWS::EKS::Addon",
        service="eks",
        read="DescribeAddon",
        update="UpdateAddon",
        ref="{ClusterName}|{AddonName}",
        ident={"clusterName": "{ClusterName}", "addonName": "{AddonName}"},
        renames={"PreserveOnDelete": "preserve"},
        # without a version, UpdateAddon does not change it
        resets={
            "AddonVersion": None,
            "ConfigurationValues": "{}",
            "PodIdentityAssociations": [],
            "ResolveConflicts": None,
        },
        arn="{addonArn}",
        ready="ACTIVE",
    ),
    Row(
        type="AWS::EKS::PodIdentityAssociation",
        service="eks",
        read="DescribePodIdentityAssociation",
        update="UpdatePodIdentityAssociation",
        ref="{associationArn}",
        ident={"clusterName": "{ClusterName}", "associationId": "{ref/}"},
        resets={"DisableSessionTags": False, "Policy": "", "TargetRoleArn": ""},
        attributes={"ExternalId": "{externalId}"},
        arn="{ref}",
    ),
    Row(
        type="AWS::EKS::Capability",
        service="eks",
        read="DescribeCapability",
        update="UpdateCapability",
        ref="{arn}",
        ident={"clusterName": "{ClusterName}", "capabilityName": "{CapabilityName}"},
        arn="{ref}",
        ready="ACTIVE",
    ),
    Row(
        type="AWS::EKS::AccessEntry",
        service="eks",
        read="DescribeAccessEntry",
        update="UpdateAccessEntry",
        ref="{PrincipalArn}|{ClusterName}",
        ident={"clusterName": "{ClusterName}", "principalArn": "{PrincipalArn}"},
        resets={"KubernetesGroups": []},
        by_hand="AccessPolicies",
        arn="{accessEntryArn}",
        hook=_set_policies,
    ),
)
