"""AWS::APS::Scraper: Ref gives the ARN."""

import base64
import binascii
from typing import Any

from ultracluster.localaws.handlers.common import tag_changes, undo_on_failure
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    lower_first,
    pick,
    tag_map,
)


@handler
class Scraper(Handler):
    """AWS::APS::Scraper with its logging. Another source replaces it."""

    type = "AWS::APS::Scraper"
    supported_properties = frozenset(
        {
            *("Alias", "ScrapeConfiguration", "Source", "Destination"),
            *("RoleConfiguration", "ScraperLoggingConfiguration", "Tags"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the scraper, then its logging."""
        amp = context.client("amp")
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        made = amp.create_scraper(**_parameters(properties), source=lower_first(properties["Source"]), tags=tags)
        with undo_on_failure(lambda: amp.delete_scraper(scraperId=made["scraperId"])):
            _set_logging(amp, made["scraperId"], {}, properties)
            return _describe(amp, made["arn"])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update alias, configuration, destination, roles, logging and tags."""
        amp, scraper_id = context.client("amp"), _scraper_id(physical_id)
        if _parameters(old) != _parameters(new):
            amp.update_scraper(scraperId=scraper_id, **_parameters(new))
        _set_logging(amp, scraper_id, old, new)
        added, removed = tag_changes(old, new)
        if removed:
            amp.untag_resource(resourceArn=physical_id, tagKeys=removed)
        if added:
            amp.tag_resource(resourceArn=physical_id, tags=added)
        return _describe(amp, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the scraper."""
        context.client("amp").delete_scraper(scraperId=_scraper_id(physical_id))


def _scraper_id(arn: str) -> str:
    return arn.rsplit("/", 1)[1]


def _parameters(properties: Properties) -> dict[str, Any]:
    """Properties as CreateScraper and UpdateScraper take them. A template has the configuration in base64."""
    given = lower_first(pick(properties, "Alias", "Destination", "RoleConfiguration"))
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value}
    blob = properties["ScrapeConfiguration"]["ConfigurationBlob"]
    return {**parameters, "scrapeConfiguration": {"configurationBlob": _decoded(blob)}}


def _decoded(blob: str) -> bytes:
    try:
        return base64.b64decode(blob, validate=True)
    except binascii.Error as error:
        raise HandlerError(f"ConfigurationBlob is not base64: {error}") from error


def _set_logging(amp: Any, scraper_id: str, old: Properties, new: Properties) -> None:
    before, after = (version.get("ScraperLoggingConfiguration") for version in (old, new))
    if before == after:
        return
    if after:
        amp.update_scraper_logging_configuration(scraperId=scraper_id, **lower_first(after))
    else:
        amp.delete_scraper_logging_configuration(scraperId=scraper_id)


def _describe(amp: Any, arn: str) -> Resource:
    found = amp.describe_scraper(scraperId=_scraper_id(arn))["scraper"]
    return Resource(arn, {"Arn": arn, "ScraperId": found["scraperId"], "RoleArn": found["roleArn"]})
