"""The alarm before a Capacity Block ends."""

import json

import pytest
from aws_cdk.assertions import Match, Template
from moto.events.models import EventPattern

from tests.synthesis import templates
from ultracluster.constructs.capacity_blocks import DETAIL_TYPES, ending

BLOCK = "cr-0123456789abcdef0"


@pytest.mark.parametrize("detail_type", DETAIL_TYPES)
@pytest.mark.parametrize(("reservation", "matches"), [(BLOCK, True), ("cr-0fedcba9876543210", False)])
def test_only_the_end_of_our_blocks_matches(detail_type: str, reservation: str, *, matches: bool):
    event = {
        "id": "1",
        "source": "aws.ec2",
        "account": "111122223333",
        "time": "2026-11-22T10:50:00Z",
        "region": "us-east-2",
        "resources": [],
        "detail-type": detail_type,
        "detail": {"capacity-reservation-id": reservation, "end-date": "2026-11-22T11:30:00Z"},
    }
    assert EventPattern.load(json.dumps(ending([BLOCK]))).matches_event(event) is matches


def test_the_delivery_of_a_block_is_no_alarm():
    assert "Capacity Block Reservation Delivered" not in str(ending([BLOCK]))


def test_environments_with_a_capacity_block_have_the_alarm():
    alerts = Template.from_json(templates("prod")["alerts"])
    alerts.has_resource_properties(
        "AWS::Events::Rule", {"EventPattern": {"detail": {"capacity-reservation-id": [BLOCK]}}}
    )
    alerts.has_resource_properties(
        "AWS::CloudWatch::Alarm",
        {
            "AlarmDescription": Match.string_like_regexp("Capacity Block ends"),
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "AlarmActions": Match.any_value(),
        },
    )


def test_environments_without_one_have_no_rule():
    Template.from_json(templates("dev")["alerts"]).resource_count_is("AWS::Events::Rule", 0)
