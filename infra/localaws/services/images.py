"""The public SSM parameters that hold ids of AWS's PCS-ready images, which moto lacks."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from moto.ssm.models import Parameter, ParameterDict

from infra.catalog.pcs import IMAGE_PARAMETER
from infra.localaws.services.patching import mend

NAMES = tuple(IMAGE_PARAMETER.format(architecture=architecture) for architecture in ("x86_64", "arm64"))


def activate() -> None:
    """Show the parameters in every Region."""
    mend(ParameterDict, "_check_loading_status", _load_images)


def image_id(name: str, region: str) -> str:
    """The image behind a parameter: made up, but always the same one for a Region."""
    return f"ami-{hashlib.sha256(f'{region} {name}'.encode()).hexdigest()[:17]}"


def _load_images(original: Any, self: ParameterDict, key: str) -> None:
    original(self, key)
    if key in NAMES and not dict.__contains__(self, key):
        parameter = Parameter(
            account_id=self.account_id,
            name=key,
            value=image_id(key, self.region_name),
            parameter_type="String",
            description=None,
            allowed_pattern=None,
            keyid=None,
            last_modified_date=datetime(2026, 11, 1, tzinfo=UTC).timestamp(),
            version=1,
            data_type="aws:ec2:image",
        )
        dict.__setitem__(self, key, [parameter])
