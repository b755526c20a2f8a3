"""The pictures in docs/dashboards are those of today's dashboards: run `make previews` after a change."""

import json
from html import unescape

import pytest

from tests.synthesis import ROOT
from ultracluster import load
from ultracluster.telemetry.dashboards import dashboards

PREVIEWS = ROOT / "docs/dashboards"
BOARDS = {
    each.uid.partition("-")[2]: json.loads(each.text)
    for name in ("prod", "staging")
    for each in dashboards(load(ROOT / f"environments/{name}.yaml"))
}


def test_every_dashboard_has_a_picture_and_no_picture_is_left_over():
    assert {file.stem for file in PREVIEWS.glob("*.svg")} == set(BOARDS)


@pytest.mark.parametrize("slug", BOARDS)
def test_a_picture_has_the_question_and_every_panel(slug):
    drawn = unescape((PREVIEWS / f"{slug}.svg").read_text("utf-8"))
    missing = {panel["title"] for panel in BOARDS[slug]["panels"] if f">{panel['title']}</text>" not in drawn}
    assert missing == set()
    assert f">{BOARDS[slug]['description']}</text>" in drawn
    assert "No data" not in drawn


@pytest.mark.parametrize("slug", BOARDS)
def test_pictures_have_light_and_dark_colours_and_load_nothing(slug):
    drawn = (PREVIEWS / f"{slug}.svg").read_text("utf-8")
    assert "prefers-color-scheme:dark" in drawn
    assert "url(" not in drawn
    assert drawn.count("http") == 1  # the name of the SVG namespace
    assert len(drawn) < 300_000


def test_the_pages_name_every_dashboard_with_its_question():
    gallery = (PREVIEWS / "README.md").read_text("utf-8")
    table = (ROOT / "docs/observability.md").read_text("utf-8")
    for slug, board in BOARDS.items():
        assert f"## {board['title']}\n\n{board['description']}" in gallery
        assert f"({slug}.svg)" in gallery
        assert board["title"] in table
        assert board["description"] in table
