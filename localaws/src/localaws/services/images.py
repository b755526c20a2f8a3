"""Machine images: none in EC2; the ids of PCS-ready images in Parameter Store.

Templates contain image ids, which the embedded AWS does not look up. moto would create 1,300 images with volumes and
snapshots in every Region it uses; without them a Region is ready in a hundredth of the time.
"""

import hashlib
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.amis import AmiBackend
from moto.ssm.models import Parameter, ParameterDict

from localaws.services.patching import patch_method

# AWS PCS User Guide, "Using AWS PCS-ready DLAMIs" (2026).
PCS_IMAGES = "/aws/service/pcs/ami/"
PCS_IMAGE_PARAMETERS = tuple(
    f"{PCS_IMAGES}dlami-base-ubuntu2404/{architecture}/latest/ami-id" for architecture in ("x86_64", "arm64")
)


def activate() -> None:
    """Remove moto's images, and add the parameters of PCS-ready images."""
    patch_method(AmiBackend, "_load_amis", lambda _original, _self: None)
    patch_method(ParameterDict, "_check_loading_status", _name_images)


def _name_images(original: Any, self: Any, key: str) -> None:
    original(self, key)
    if not str(key or "").startswith(PCS_IMAGES):
        return
    for name in PCS_IMAGE_PARAMETERS:
        if not dict.__contains__(self, name):
            image = f"ami-{hashlib.sha256((self.region_name + name).encode()).hexdigest()[:17]}"
            dict.__setitem__(self, name, [_parameter(self, name, image)])


def _parameter(self: Any, name: str, value: str) -> Any:
    return Parameter(
        account_id=self.account_id,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=utcnow(),
        version=1,
        data_type="aws:ec2:image",
    )
