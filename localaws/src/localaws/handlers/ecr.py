"""AWS::ECR::Repository."""

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting


def _check(_: Context, __: Properties, new: Properties) -> None:
    if "RegistryId" in new.get("LifecyclePolicy", {}):
        raise HandlerError("the embedded AWS has one registry. Remove LifecyclePolicy.RegistryId")


register(
    Row(
        type="AWS::ECR::Repository",
        service="ecr",
        ignored="ImageTagMutabilityExclusionFilters",
        name=("RepositoryName", 64),
        lower_name=True,
        read="DescribeRepositories",
        ref="{RepositoryName}",
        renames={"EmptyOnDelete": "force"},
        settings=(
            Setting(
                "ImageTagMutability",
                put="PutImageTagMutability",
                reset={"ImageTagMutability": "MUTABLE"},
                at_creation=False,
            ),
            Setting(
                "ImageScanningConfiguration",
                put="PutImageScanningConfiguration",
                reset={"ImageScanningConfiguration": {"ScanOnPush": False}},
                at_creation=False,
            ),
            Setting("LifecyclePolicy", put="PutLifecyclePolicy", remove="DeleteLifecyclePolicy", spread=True),
            Setting(
                "RepositoryPolicyText",
                put="SetRepositoryPolicy",
                remove="DeleteRepositoryPolicy",
                renames={"RepositoryPolicyText": "policyText"},
            ),
        ),
        check=_check,
    ),
)
