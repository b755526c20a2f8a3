"""EKS: add-ons, access entries, pod identity associations and capabilities."""

from localaws.rows.handler import register
from localaws.rows.row import Entries, Row

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
        entries=(Entries("AccessPolicies", add="AssociateAccessPolicy", remove="DisassociateAccessPolicy"),),
        arn="{accessEntryArn}",
    ),
)
