"""The stack of the AMP managed scraper, deployed in this process: its failure stops nothing; it changes in place."""

import yaml

from localaws import faults
from tests.deployment.conftest import changed
from tests.deployment.in_process import change, client, create, deployed_as
from tests.synthesis import FILES, synthesise, templates
from ultracluster.config.loader import load

NAME = "eks-dra"
PART = "collection"


def others():
    return {part: template for part, template in templates(NAME).items() if part != PART}


def test_no_stack_imports_anything_of_the_scraper_s():
    """Exports are called STACK:NAME."""
    for part, template in others().items():
        assert f"'{NAME}-{PART}:" not in str(template), part


def test_a_region_without_room_for_a_scraper_gets_everything_but_metrics():
    environment = load(FILES[NAME])
    with deployed_as(environment, others()):
        amp, stacks = client(environment, "amp"), client(environment, "cloudformation")
        faults.inject("quota-exceeded", "AWS::APS::Scraper", operations=("create",))
        assert create(environment, PART, templates(NAME)[PART]) == "ROLLBACK_COMPLETE"
        assert not amp.list_scrapers()["scrapers"]
        stacks.delete_stack(StackName=f"{NAME}-{PART}")
        assert create(environment, PART, templates(NAME)[PART]) == "CREATE_COMPLETE"
        (scraper,) = amp.list_scrapers()["scrapers"]
        assert scraper["status"]["statusCode"] == "ACTIVE"


def test_another_interval_changes_the_scraper_in_place():
    environment = load(FILES[NAME])
    with deployed_as(environment, templates(NAME)):
        amp = client(environment, "amp")
        (before,) = amp.list_scrapers()["scrapers"]
        slower = synthesise(
            changed(NAME, lambda content: content.update(observability={"scrape_interval_seconds": 60}))
        )
        assert change(environment, PART, slower[PART]) == "UPDATE_COMPLETE"
        (after,) = amp.list_scrapers()["scrapers"]
        assert after["scraperId"] == before["scraperId"]
        found = amp.describe_scraper(scraperId=after["scraperId"])["scraper"]
        configuration = yaml.safe_load(found["scrapeConfiguration"]["configurationBlob"])
        assert configuration["global"]["scrape_interval"] == "60s"
        assert configuration["global"]["external_labels"]["cluster"].startswith(f"{NAME}-")
