"""Versions of Enroot and Pyxis."""

from tests.synthesis import ROOT
from ultracluster.catalog import instance_types
from ultracluster.catalog.containers import ENROOT_TESTED, PYXIS_TESTED, ROOT_VOLUME_GIB, minimum_enroot


def test_only_ultraservers_need_an_enroot_with_imex_channels():
    assert minimum_enroot(instance_types["p6e-gb200.36xlarge"]) == "4.0.0"
    assert minimum_enroot(instance_types["p6-b300.48xlarge"]) == minimum_enroot(None) == "3.4.0"


def test_the_page_names_the_versions_and_the_size_of_the_data():
    page = (ROOT / "docs/containers.md").read_text()
    assert f"Enroot {ENROOT_TESTED} and Pyxis {PYXIS_TESTED}" in page
    assert f"at least {ROOT_VOLUME_GIB} GiB" in page
