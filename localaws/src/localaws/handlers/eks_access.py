"""EKS: add-ons, access entries, pod identity associations and capabilities."""

from localaws.rows.handler import register
from localaws.rows.row import Entries, Row

register(
    Row(
        type="AWS::EKS::Addon",
        service="eks",
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
        ref="{associationArn}",
        ident={"clusterName": "{ClusterName}", "associationId": "{ref/}"},
        resets={"DisableSessionTags": False, "Policy": "", "TargetRoleArn": ""},
        attributes={"ExternalId": "{externalId}"},
        arn="{ref}",
    ),
    Row(
        type="AWS::EKS::Capability",
        service="eks",
        ref="{arn}",
        ident={"clusterName": "{ClusterName}", "capabilityName": "{CapabilityName}"},
        arn="{ref}",
        ready="ACTIVE",
    ),
    Row(
        type="AWS::EKS::AccessEntry",
        service="eks",
        ref="{PrincipalArn}|{ClusterName}",
        ident={"clusterName": "{ClusterName}", "principalArn": "{PrincipalArn}"},
        resets={"KubernetesGroups": []},
        entries=(Entries("AccessPolicies", add="AssociateAccessPolicy", remove="DisassociateAccessPolicy"),),
        arn="{accessEntryArn}",
    ),
)
