"""AWS::CDK::Metadata, the CDK's usage report. It creates nothing, as in AWS."""

from localaws.resources import Context, Handler, Properties, Resource, handler


@handler
class Metadata(Handler):
    """The versions of the constructs in a template."""

    type = "AWS::CDK::Metadata"
    supported_properties = frozenset({"Analytics", "Modules"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Return a new id."""
        name = context.physical_name()
        return Resource(name, {"Id": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Keep the id."""
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Do nothing."""
