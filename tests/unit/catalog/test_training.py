"""Public images for jobs meet what AWS asks for each instance type, by what is recorded of their contents."""

from datetime import date

import pytest

from ultracluster.catalog import catalog
from ultracluster.catalog.records import records
from ultracluster.catalog.training import COMPONENTS, IMAGES, closest_image, default_image, minima, version

MINIMA = {
    # CUDA, GDRCopy, EFA installer, NCCL: EC2 User Guide, "Get started with GPU instances" (2026)
    "p5.4xlarge": ((12, 1), (2, 3), (1, 43, 1), (2, 18, 3)),
    "p5.48xlarge": ((12, 1), (2, 3), (1, 24, 1), (2, 18, 3)),
    "p5e.48xlarge": ((12, 1), (2, 3), (1, 24, 1), (2, 18, 3)),
    "p5en.48xlarge": ((12, 1), (2, 3), (1, 24, 1), (2, 18, 3)),
    "p6-b200.48xlarge": ((12, 8), (2, 5), (1, 41, 0), (2, 26, 2)),
    "p6-b300.48xlarge": ((13, 0), (2, 5), (1, 44, 0), (2, 28, 3)),
    "p6e-gb200.36xlarge": ((12, 8), (2, 5), (1, 41, 0), (2, 26, 2)),
}
WITHOUT_PYTORCH = {"p6e-gb200.36xlarge"}
"""Types for which AWS publishes no current image with PyTorch."""


def numbers(image, component):
    return version(image.contents[component])


@pytest.mark.parametrize("name", catalog)
@pytest.mark.parametrize("use", ["training", "nccl-tests"])
def test_the_default_image_meets_the_minima_of_its_type(name, use):
    image, (cuda, gdrcopy, installer, nccl) = default_image(catalog[name], use), MINIMA[name]
    if use == "training" and name in WITHOUT_PYTORCH:
        assert image is None
        return
    assert image is not None
    assert catalog[name].architecture in image.architectures
    assert numbers(image, "cuda") >= cuda
    assert numbers(image, "gdrcopy") >= gdrcopy
    assert numbers(image, "efa_installer") >= installer
    assert numbers(image, "nccl") >= nccl


def test_the_default_image_gets_patches_when_the_catalogue_was_read():
    read = date.fromisoformat(records("training")["read"])
    for hardware in catalog.values():
        image = default_image(hardware)
        assert image is None or (image.end_of_patch and image.end_of_patch > read)


def test_the_plugin_supports_the_nccl_beside_it():
    """aws-ofi-nccl 1.21 is for NCCL 2.17.1 to 2.31.2 (its release notes)."""
    for image in IMAGES:
        if image.contents.get("aws_ofi_nccl", "").startswith("1.21."):
            assert (2, 17, 1) <= numbers(image, "nccl") <= (2, 31, 2)


def test_the_driver_of_the_node_images_runs_every_default_image():
    driver = version(records("eks")["image"]["nvidia_driver"])
    for name, hardware in catalog.items():
        assert driver >= version(minima(hardware)["nvidia_driver"]), name
        for image in (default_image(hardware), default_image(hardware, "nccl-tests")):
            assert image is None or driver >= numbers(image, "nvidia_driver"), name


@pytest.mark.parametrize("name", catalog)
@pytest.mark.parametrize("component", [component for component in COMPONENTS if component != "nvidia_driver"])
def test_an_image_below_any_minimum_is_not_chosen(name, component, monkeypatch):
    """Images like the default one, but older in one component, are passed over."""
    hardware = catalog[name]
    image = default_image(hardware, "nccl-tests")
    monkeypatch.setitem(image.contents, component, "1.0")
    assert default_image(hardware, "nccl-tests") is None
    assert image.shortfalls(hardware) == [f"{COMPONENTS[component]} 1.0, minimum {minima(hardware)[component]}"]


def test_what_aws_published_for_b300_and_gb200_before_was_too_old():
    """PyTorch 2.9's image had NCCL 2.27.5, the arm64 image has EFA installer 1.40.0."""
    assert version("2.27.5") < MINIMA["p6-b300.48xlarge"][3]
    arm = closest_image(catalog["p6e-gb200.36xlarge"])
    assert arm is not None
    assert "EFA installer 1.40.0, minimum 1.41.0" in arm.shortfalls(catalog["p6e-gb200.36xlarge"])


def test_another_architecture_is_a_shortfall():
    assert IMAGES[0].shortfalls(catalog["p6e-gb200.36xlarge"]) == ["built for x86_64"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2.28.3-1", (2, 28, 3)), ("1.47", (1, 47)), ("2.6.0amzn1.0", (2, 6, 0)), ("580.159.03", (580, 159, 3)), ("", ())],
)
def test_versions_compare_by_their_numbers(text, expected):
    assert version(text) == expected


def test_every_image_has_a_source_and_a_tag():
    for image in IMAGES:
        assert image.source
        assert image.name.partition(":")[2]
        assert "latest" not in image.name
