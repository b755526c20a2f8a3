"""The architecture diagrams match the templates, and nothing in them overlaps."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from scripts.architecture import kubernetes, slurm
from scripts.architecture_svg import PICTURES
from tests.synthesis import templates

SOURCES = {"architecture": slurm.SOURCE, "architecture-eks": kubernetes.SOURCE}
TEXTS = {file.stem: file.read_text() for file in PICTURES}
DRAWN = [
    (picture, stack, kind)
    for picture, text in TEXTS.items()
    for stack, kind in sorted(set(re.findall(r'data-stack="([\w-]+)" data-type="([\w:-]+)"', text)))
]


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.stem)
def test_the_committed_diagram_is_current(file):
    assert file.read_text() == PICTURES[file]()


@pytest.mark.parametrize(("picture", "stack", "kind"), DRAWN)
def test_every_resource_in_the_diagram_is_created(picture, stack, kind):
    resources = templates(SOURCES[picture].name)[stack]["Resources"].values()
    assert kind in {resource["Type"] for resource in resources}


@pytest.mark.parametrize("picture", TEXTS)
def test_the_legend_has_every_stack_with_its_number_of_resources(picture):
    stacks = templates(SOURCES[picture].name)
    assert set(SOURCES[picture].parts) == set(stacks)
    for part, template in stacks.items():
        count = len(template["Resources"])
        assert re.search(rf">{part}</text><text [^>]*>{count} resources<", TEXTS[picture]), part


SPACE = "{http://www.w3.org/2000/svg}"


def parsed(picture):
    return ElementTree.fromstring(TEXTS[picture])  # noqa: S314 - our own file


def rectangles(picture):
    """Left, top, right and bottom of each shape with a border."""
    for shape in parsed(picture).iter(f"{SPACE}rect"):
        if {"box", "frame", "paper"} & set(shape.get("class").split()):
            x, y, width, height = (float(shape.get(name)) for name in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height


@pytest.mark.parametrize("picture", TEXTS)
def test_shapes_with_a_border_do_not_overlap_partly(picture):
    for one, other in combinations(rectangles(picture), 2):
        outside = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        inside = any(
            a[0] < b[0] and a[1] < b[1] and b[2] < a[2] and b[3] < a[3] for a, b in ((one, other), (other, one))
        )
        assert outside or inside, (one, other)


@pytest.mark.parametrize("picture", TEXTS)
def test_the_text_of_a_box_ends_above_its_lower_border(picture):
    for group in parsed(picture).iter(f"{SPACE}g"):
        shapes = [shape for shape in group.iter(f"{SPACE}rect") if "box" in shape.get("class").split()]
        for shape in shapes:
            bottom = float(shape.get("y")) + float(shape.get("height"))
            assert all(float(text.get("y")) <= bottom - 8 for text in group.iter(f"{SPACE}text"))


WIDTHS = {"name": 8.6, "line": 6.7}  # a character of the font size in pixels, on average, in Arial and Helvetica


@pytest.mark.parametrize("picture", TEXTS)
def test_texts_fit_into_their_boxes(picture):
    checked = 0
    for group in parsed(picture).iter(f"{SPACE}g"):
        shape = group.find(f"{SPACE}rect")
        if "box" not in shape.get("class").split():
            continue
        right = float(shape.get("x")) + float(shape.get("width"))
        bottom = float(shape.get("y")) + float(shape.get("height"))
        for text in group.iter(f"{SPACE}text"):
            checked += 1
            assert float(text.get("x")) + len(text.text) * WIDTHS[text.get("class")] <= right, text.text
            assert float(text.get("y")) < bottom, text.text
    assert checked
