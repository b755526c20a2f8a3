"""The picture of the architecture is drawn from today's templates."""

import re

import pytest

from scripts import architecture_svg
from tests.synthesis import templates

DRAWN = sorted(set(re.findall(r'data-stack="([\w-]+)" data-type="([\w:]+)"', architecture_svg.SVG.read_text())))


def test_the_picture_is_current():
    assert architecture_svg.SVG.read_text() == architecture_svg.picture()


@pytest.mark.parametrize(("stack", "kind"), DRAWN)
def test_what_is_drawn_is_created(stack, kind):
    assert kind in {resource["Type"] for resource in templates("prod")[stack]["Resources"].values()}


def test_every_stack_has_a_colour_and_its_count():
    text = architecture_svg.SVG.read_text()
    for part, template in templates("prod").items():
        assert re.search(rf">prod-{part}</text><text [^>]*>{len(template['Resources'])} resources<", text), part
