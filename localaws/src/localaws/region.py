"""Values that templates look up in their Region: exports, other stacks' outputs, SSM parameters, Availability Zones."""

from botocore.exceptions import ClientError

from localaws.intrinsics import TemplateError
from localaws.resources import client
from localaws.stacks import StackBackend, stack_backends


class RegionLookup:
    """Look-ups for the functions of one stack. `imports` collects the exports that the stack imports."""

    def __init__(self, backend: StackBackend) -> None:
        self._backend = backend
        self.imports: set[str] = set()

    def exported(self, name: str) -> str:
        """The value of an export. TemplateError when nothing exports it."""
        found = self._backend.exports().get(name)
        if found is None:
            raise TemplateError(f"No export named {name} found.")
        self.imports.add(name)
        return found[1]

    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        """The value of another stack's output. TemplateError when there is none."""
        here: StackBackend = stack_backends[self._backend.account_id][region or self._backend.region_name]
        found = here.find(stack)
        if found is None or output not in found.outputs:
            raise TemplateError(f"Stack {stack} has no output {output}")
        return found.outputs[output].value

    def ssm_parameter(self, name: str, version: str | None = None) -> str:
        """The value of an SSM parameter. TemplateError when there is none."""
        try:
            wanted = f"{name}:{version}" if version else name
            parameter = client("ssm", self._backend.region_name, self._backend.account_id).get_parameter(Name=wanted)[
                "Parameter"
            ]
        except ClientError as error:
            reason = f"Unable to fetch parameters [{name}] from parameter store for this account."
            raise TemplateError(reason) from error
        return str(parameter["Value"])

    def zones(self, region: str) -> list[str]:
        """Names of the Region's Availability Zones."""
        found = client("ec2", region, self._backend.account_id).describe_availability_zones()["AvailabilityZones"]
        return sorted(zone["ZoneName"] for zone in found)
