"""AWS::EC2 gateways: internet gateway, Elastic IP address, NAT gateway."""

from typing import Any

from localaws.handlers.common import ec2_tags, retag_ec2
from localaws.handlers.ec2_network import Ec2Handler, require_vpc
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    pick,
    require,
    require_subnets,
)


@handler
class InternetGateway(Ec2Handler):
    """AWS::EC2::InternetGateway."""

    type = "AWS::EC2::InternetGateway"
    supported_properties = frozenset({"Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the gateway, not attached."""
        tags = ec2_tags(context, "internet-gateway", properties)
        made = context.client("ec2").create_internet_gateway(TagSpecifications=tags)
        return self.describe(context, made["InternetGateway"]["InternetGatewayId"])

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id."""
        return Resource(physical_id, {"InternetGatewayId": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while it is attached."""
        context.client("ec2").delete_internet_gateway(InternetGatewayId=physical_id)


@handler
class VpcGatewayAttachment(Handler):
    """AWS::EC2::VPCGatewayAttachment, of an internet gateway."""

    type = "AWS::EC2::VPCGatewayAttachment"
    supported_properties = frozenset({"VpcId", "InternetGatewayId"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Attach the gateway."""
        require_vpc(context, properties["VpcId"])
        if "InternetGatewayId" not in properties:
            raise HandlerError("InternetGatewayId is missing")
        context.client("ec2").attach_internet_gateway(**properties)
        return Resource(f"IGW|{properties['VpcId']}", {"AttachmentType": "IGW"})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Detach the gateway. EC2 refuses while public addresses use it."""
        context.client("ec2").detach_internet_gateway(**properties)


@handler
class Eip(Ec2Handler):
    """AWS::EC2::EIP, not yet associated."""

    type = "AWS::EC2::EIP"
    supported_properties = frozenset({"Domain", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Allocate an address."""
        ec2, tags = context.client("ec2"), ec2_tags(context, "elastic-ip", properties)
        made = ec2.allocate_address(Domain=properties.get("Domain", "vpc"), TagSpecifications=tags)
        return self.describe(context, made["PublicIp"])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Retag."""
        self.change(context, physical_id, old, new)
        retag_ec2(context, self._allocation(context, physical_id), old, new)
        return self.describe(context, physical_id)

    def describe(self, context: Context, physical_id: str) -> Resource:
        """The address, which is also the physical id."""
        allocation = self._allocation(context, physical_id)
        return Resource(physical_id, {"PublicIp": physical_id, "AllocationId": allocation})

    def _allocation(self, context: Context, address: str) -> str:
        found = context.client("ec2").describe_addresses(PublicIps=[address])["Addresses"]
        return str(found[0]["AllocationId"])

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while the address is in use."""
        context.client("ec2").release_address(AllocationId=self._allocation(context, physical_id))


@handler
class NatGateway(Ec2Handler):
    """AWS::EC2::NatGateway, in a subnet."""

    type = "AWS::EC2::NatGateway"
    supported_properties = frozenset({"SubnetId", "AllocationId", "ConnectivityType", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the gateway. A public one needs a free Elastic IP address."""
        ec2 = context.client("ec2")
        if "SubnetId" not in properties:
            raise HandlerError("SubnetId is missing")
        require_subnets(context, [properties["SubnetId"]])
        public = properties.get("ConnectivityType", "public") == "public"
        allocation = properties.get("AllocationId")
        if public != (allocation is not None):
            raise HandlerError("a public NAT gateway needs an AllocationId, and a private one takes none")
        if public:
            found = require(
                lambda: ec2.describe_addresses(AllocationIds=[allocation])["Addresses"],
                f"elastic address {allocation} does not exist",
            )
            if "AssociationId" in found[0]:
                raise HandlerError(f"Elastic IP address {allocation} is already associated")
        made = ec2.create_nat_gateway(
            TagSpecifications=ec2_tags(context, "natgateway", properties),
            **pick(properties, "SubnetId", "AllocationId", "ConnectivityType"),
        )
        return self.describe(context, made["NatGateway"]["NatGatewayId"])

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id and network interface."""
        found: Any = context.client("ec2").describe_nat_gateways(NatGatewayIds=[physical_id])["NatGateways"]
        interface = found[0]["NatGatewayAddresses"][0]["NetworkInterfaceId"]
        return Resource(physical_id, {"NatGatewayId": physical_id, "EniId": interface})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the gateway, which releases its Elastic IP address."""
        context.client("ec2").delete_nat_gateway(NatGatewayId=physical_id)
