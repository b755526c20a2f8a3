"""Launch templates: corrections of how moto stores and lists them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from moto.ec2.exceptions import InvalidLaunchTemplateIdNotFound
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateBackend
from moto.ec2.responses import EC2Response

from localaws.services.patching import patch

_METADATA_KEY = r"[0-9a-zA-Z\-_+=,.@:]{1,255}"


def activate() -> None:
    """Separate a template's own tags from its data, list all templates, refuse unknown ids."""
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda _self, _tags: None)


def is_mime_multipart(user_data: bytes) -> bool:
    """Whether user data is MIME multipart, the only form to which a service can add its own part."""
    return re.search(rb"^content-type:\s*multipart/", user_data, re.IGNORECASE | re.MULTILINE) is not None


def refused_tag_key(data: Mapping[str, Any], more: Iterable[str] = ()) -> str | None:
    """Why EC2 would refuse a tag of the instances; None if it accepts all. `more` are keys that a service adds.

    Source: EC2 User Guide, "View tags for your EC2 instances using instance metadata" (2026); the words are those of
    terraform-aws-eks issue 1785.
    """
    if (data.get("MetadataOptions") or {}).get("InstanceMetadataTags") != "enabled":
        return None
    specifications = [spec for spec in data.get("TagSpecifications") or () if spec["ResourceType"] == "instance"]
    keys = [*(tag["Key"] for spec in specifications for tag in spec.get("Tags") or ()), *more]
    for key in keys:
        if not re.fullmatch(_METADATA_KEY, key) or key in (".", "..", "_index"):
            return (
                f"'{key}' is not a valid tag key. Tag keys must match pattern ({_METADATA_KEY}), and must not be a "
                "reserved name ('.', '..', '_index')"
            )
    return None


@patch(LaunchTemplate, "create_version")
def _create_version(original: Any, self: Any, data: dict[str, Any], description: str) -> Any:
    # moto mixes the tags of the template with TagSpecifications for launched resources.
    launched = [spec for spec in data.pop("TagSpecifications", []) if spec["ResourceType"] != "launch-template"]
    return original(self, {**data, "TagSpecifications": launched} if launched else data, description)


@patch(LaunchTemplateBackend, "describe_launch_templates")
def _describe(
    original: Any, self: Any, template_names: Any = None, template_ids: Any = None, filters: Any = None
) -> Any:
    for template_id in template_ids or []:
        if template_id not in self.launch_templates:
            raise InvalidLaunchTemplateIdNotFound(template_id)
    return original(self, template_names, template_ids, filters)


@patch(EC2Response, "describe_launch_templates")
@patch(EC2Response, "describe_launch_template_versions")
def _list_all(original: Any, self: Any) -> Any:
    # moto returns 15 at most, without a token. Here one response holds all templates and versions.
    self.params = {**self.params, "MaxResults": self._get_int_param("MaxResults", 1000)}
    return original(self)
