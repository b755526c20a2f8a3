"""IAM beyond moto's: AWS's managed policies are there, and a policy in use is not deleted."""

from typing import Any

from moto.core.config import default_user_config
from moto.iam.exceptions import DeleteConflictException
from moto.iam.models import IAMBackend

from infra.localaws.services.patching import mend


def activate() -> None:
    """Load AWS's managed policies into every account that is made from now on, and refuse what IAM refuses."""
    default_user_config["iam"]["load_aws_managed_policies"] = True
    mend(IAMBackend, "delete_policy", _delete_policy)


def _delete_policy(original: Any, self: Any, policy_arn: str) -> Any:
    policy = self.get_policy(policy_arn)
    if policy.attachment_count:
        raise DeleteConflictException("Cannot delete a policy attached to entities.")
    if len(policy.versions) > 1:
        raise DeleteConflictException(
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions."
        )
    return original(self, policy_arn)
