"""Effects of changes: each field has them, and those that depend on values decide by the values."""

import pytest

from tests.contract.effects.changes import DELETED, KEY, WITH_AD, WITH_FAR, WITH_FAR_POOL, WITH_FAR_QUEUE, environment
from tests.contract.effects.models import models
from ultracluster.catalog.eks import KUBERNETES_VERSIONS
from ultracluster.config.comparison import compare, effects_of
from ultracluster.config.effect_words import happens, in_docs, jobs_lost

TRAIN = "node_groups.train"
PLANE = "control_plane"
SETTINGS = f"{PLANE}.slurm_settings"
COMPUTE = ("train", "res", "block", "pool", "ultra", "prep")


def change(base, *steps, first=()):
    return compare(environment(base, first), environment(base, (*first, *steps)))


def only(found):
    (each,) = found
    return each


def test_every_field_of_the_environment_file_has_an_effect():
    missing = [
        f"{name}.{key}" for name, model in models().items() for key in model.model_fields if not effects_of(model, key)
    ]
    assert not missing, "annotate the field with Effects: infra/ultracluster/config/effects.py"


@pytest.mark.parametrize("base", ["pcs", "eks"])
def test_the_same_file_changes_nothing(base):
    assert change(base) == []


def test_a_default_that_is_written_out_is_no_change():
    assert change("pcs", (f"{TRAIN}.root_volume_gib", 300)) == []


def test_entries_of_lists_are_compared_by_name():
    before, after = environment("pcs", ()), environment("pcs", ())
    turned = after.model_copy(update={"node_groups": after.node_groups[::-1]})
    assert compare(before, turned) == []


@pytest.mark.parametrize(
    ("base", "steps", "kind", "nodes", "words"),
    [
        ("pcs", [(f"{TRAIN}.count.max", 8)], "in-place", (), ""),
        ("pcs", [(f"{TRAIN}.count.max", 2)], "in-place", (), "return to their queues"),
        ("pcs", [(f"{TRAIN}.image", "ami-0123456789abcdef0")], "nodes", ("train",), ""),
        ("pcs", [(f"{TRAIN}.instance_type", "p5e.48xlarge")], "group", ("train",), ""),
        ("eks", [(f"{TRAIN}.instance_type", "p5e.48xlarge")], "nodes", ("train",), ""),
        ("eks", [(f"{TRAIN}.image", "ami-0123456789abcdef0")], "group", ("train",), ""),
        ("eks", [(f"{TRAIN}.purchase.type", "spot")], "group", ("train",), ""),
        ("pcs", [(f"{TRAIN}.purchase.type", "spot")], "in-place", (), ""),
        ("pcs", [(f"{PLANE}.size", "large")], "refused", (), "second environment"),
        ("pcs", [("storage.lustre.capacity_gib", 7200)], "in-place", (), ""),
        ("pcs", [("storage.lustre.capacity_gib", 2400)], "refused", (), "storage.more"),
        ("pcs", [("storage.home.capacity_gib", 1030)], "refused", (), "capacity_gib to 1127"),
        ("pcs", [("availability_zone", "us-east-2c")], "refused", (), "second environment"),
        ("pcs", [("storage.buckets.archive", DELETED)], "in-place", (), ""),
        ("pcs", [(SETTINGS, {"MinJobAge": 300})], "in-place", (), "accepts and starts no jobs"),
        ("pcs", [(SETTINGS, {"Prolog": "/opt/prolog"})], "nodes", COMPUTE, ""),
        ("pcs", [(SETTINGS, {"PrivateData": "jobs"})], "nodes", ("login",), ""),
        ("pcs", [(SETTINGS, {"PrivateData": "jobs", "Epilog": "/opt/epilog"})], "nodes", (*COMPUTE, "login"), ""),
        ("eks", [(f"{PLANE}.jobs", ["trainer"])], "content", (), "end the jobs"),
        ("eks", [("tags", {"team": "two"})], "in-place", (), ""),
    ],
)
def test_effects_by_value(base, steps, kind, nodes, words):
    each = only(change(base, *steps))
    assert (each.effect.kind, each.nodes) == (kind, nodes)
    assert words in f"{each.effect.jobs} {each.effect.first}"


def test_the_metrics_that_privatedata_forbids_are_served_by_login_nodes_where_there_are_any():
    first = [("observability", {"metrics": "none", "auto_repair": False})]
    assert only(change("pcs", (SETTINGS, {"PrivateData": "jobs"}), first=first)).effect.kind == "in-place"


@pytest.mark.parametrize(("key", "kind"), [("secret_key_arn", "in-place"), ("domain", "nodes")])
def test_the_key_of_the_secret_of_a_directory_is_a_right_of_nodes_alone(key, kind):
    value = {"secret_key_arn": KEY, "domain": "other.example.com"}[key]
    assert only(change("pcs", (f"access.directory.{key}", value), first=WITH_AD)).effect.kind == kind


@pytest.mark.parametrize(
    ("base", "first", "steps", "stacks"),
    [
        (
            "pcs",
            WITH_FAR_QUEUE,
            [("node_groups.far", DELETED), (f"{PLANE}.queues.far", DELETED)],
            "'NAME-compute*' -c",
        ),
        (
            "eks",
            WITH_FAR,
            [("node_groups.far.zones", ["us-east-2a"])],
            "'NAME-compute*' -c",
        ),
        (
            "eks",
            WITH_FAR_POOL,
            [(f"{PLANE}.karpenter.pools.far", DELETED)],
            "'NAME-compute*' NAME-platform -c",
        ),
        (
            "eks",
            WITH_FAR_POOL,
            [(f"{PLANE}.karpenter", False)],
            "'NAME-compute*' NAME-platform -c",
        ),
    ],
)
def test_a_zone_that_leaves_with_its_group_or_pool_needs_two_deployments(base, first, steps, stacks):
    (refused,) = (each for each in change(base, *steps, first=first) if each.effect.kind == "refused")
    assert "us-east-2c" in refused.effect.note
    assert f"--exclusively {stacks}" in refused.effect.first


def test_reservations_of_spares_that_are_kept_no_longer_are_named():
    first = [("health.spares", {"res": 1, "pool": 1})]
    each = only(change("pcs", ("health.spares", {"pool": 2}), first=first))
    assert (each.effect.kind, each.nodes) == ("nodes", ("login",))
    assert "spares-res" in each.effect.note
    assert "spares-pool" not in each.effect.note


def test_jobset_that_trainer_brings_is_no_change():
    each = only(change("eks", (f"{PLANE}.jobs", ["jobset", "trainer"]), first=[(f"{PLANE}.jobs", ["trainer"])]))
    assert each.effect.kind == "none"


def test_auto_size_is_a_change_where_the_fleet_outgrows_it():
    first = ((f"{PLANE}.size", "auto"), (f"{TRAIN}.count.max", 2))
    found = change("pcs", (f"{TRAIN}.count.max", 500), first=first)
    size = next(each for each in found if each.path == "control_plane.size")
    assert (size.old, size.new, size.effect.kind) == ("auto (medium)", "auto (large)", "refused")
    assert all(each.path != "control_plane.size" for each in change("pcs", (f"{TRAIN}.count.max", 4), first=first))


def test_another_control_plane_is_refused():
    found = compare(environment("pcs", ()), environment("eks", ()))
    assert [(each.path, each.effect.kind) for each in found] == [("control_plane.type", "refused")]


# Slurm and Kubernetes


def slurm(old, new, settings=None, after=None):
    before = environment("pcs", [(f"{PLANE}.slurm_version", "26.05"), (f"{PLANE}.slurm_settings", settings or {})])
    plane = before.control_plane
    old_plane = plane.model_copy(update={"slurm_version": old})
    new_plane = plane.model_copy(
        update={"slurm_version": new, "slurm_settings": settings or {} if after is None else after}
    )
    found = compare(
        before.model_copy(update={"control_plane": old_plane}), before.model_copy(update={"control_plane": new_plane})
    )
    return next(each.effect for each in found if each.path == "control_plane.slurm_version")


@pytest.mark.parametrize(
    ("old", "new"), [("24.11", "25.05"), ("24.11", "26.05"), ("25.05", "25.11"), ("25.05", "26.05"), ("25.11", "26.05")]
)
def test_pcs_upgrades_slurm_in_place(old, new):
    effect = slurm(old, new)
    # login nodes collect Slurm's metrics, which it serves from 25.11 on
    assert (effect.kind, effect.nodes) == (("nodes", "login") if old < "25.11" <= new else ("in-place", ""))
    assert slurm(old, new, {"PrivateData": "jobs"}).kind == "in-place"


@pytest.mark.parametrize(("old", "new"), [("26.05", "25.11"), ("25.11", "25.05"), ("25.11", "27.05")])
def test_other_versions_of_slurm_are_refused(old, new):
    assert slurm(old, new).kind == "refused"


def test_spank_plugins_need_an_empty_fleet_below_2605():
    assert "SPANK" in slurm("25.05", "25.11").first
    assert "SPANK" not in slurm("25.11", "26.05").first


@pytest.mark.parametrize("path", ["storage.home", "storage.lustre", "storage.buckets[datasets]"])
@pytest.mark.parametrize(("retain", "said"), [(True, " stay"), (False, "deletes it with its data")])
@pytest.mark.parametrize("turned", [False, True])
def test_data_that_leaves_the_file_stays_only_if_the_deployed_stacks_retain_it(path, retain, said, turned):
    """The template that is deployed decides, not the new one."""
    removed = path.replace("[", ".").removesuffix("]"), DELETED
    found = change(
        "pcs", removed, ("retain", retain != turned), first=[("retain", retain), ("storage.lustre.links", [])]
    )
    (effect,) = (each.effect for each in found if each.path == path)
    assert effect.kind == "refused"
    assert said in effect.first


@pytest.mark.parametrize(
    ("base", "path", "stacks"),
    [
        ("pcs", "storage.home", "NAME-compute NAME-alerts -c"),
        ("pcs", "storage.more[scratch]", "NAME-compute NAME-alerts -c"),
        ("pcs", "storage.more[shared]", "NAME-compute -c"),
        ("pcs", "storage.lustre", "cdk destroy NAME-links -c env=NAME with the old file, then"),
    ],
)
def test_stacks_that_import_a_file_system_are_deployed_before_it_goes(base, path, stacks):
    """Alarms on the capacity import it too; EFS has none."""
    removed = path.replace("[", ".").removesuffix("]"), DELETED
    (effect,) = (each.effect for each in change(base, removed) if each.path == path)
    assert stacks in effect.first
    assert "NAME-alerts with the old file" not in effect.first
    unwatched = [("observability", {"metrics": "none"})]
    (effect,) = (each.effect for each in change(base, removed, first=unwatched) if each.path == path)
    assert ("NAME-alerts with the old file" in effect.first) == ("shared" not in path)


@pytest.mark.parametrize("name", ["SchedulerParameters", "SlurmctldParameters"])
def test_words_that_a_version_has_no_longer_are_removed_first(name):
    effect = slurm("25.11", "26.05", {name: "enable_job_state_cache"})
    assert (effect.kind, effect.first) == (
        "refused",
        f"remove enable_job_state_cache from {name}, deploy, then upgrade",
    )


def test_settings_of_the_new_version_come_after_the_upgrade():
    effect = slurm("25.05", "25.11", {}, {"MetricsType": "openmetrics"})
    assert effect.kind == "refused"
    assert "then add MetricsType" in effect.first


@pytest.mark.parametrize(("new", "kind"), [("1.35", "nodes"), ("1.36", "refused"), ("1.33", "refused")])
def test_kubernetes_is_upgraded_one_minor_version_at_a_time(new, kind):
    each = only(change("eks", (f"{PLANE}.kubernetes_version", new)))
    assert each.effect.kind == kind


def test_the_release_of_images_that_is_the_default_is_no_change():
    default = KUBERNETES_VERSIONS["1.34"].image_release
    assert only(change("eks", (f"{PLANE}.image_release", default))).effect.kind == "none"
    assert only(change("eks", (f"{PLANE}.image_release", "1.34.9-20260801"))).effect.kind == "nodes"


def test_nodes_with_an_image_of_their_own_keep_its_kubernetes():
    first = [(f"{TRAIN}.image", "ami-0123456789abcdef0")]
    each = only(change("eks", (f"{PLANE}.kubernetes_version", "1.35"), first=first))
    assert "train" not in each.nodes
    assert {"res", "system"} <= {*each.nodes}
    assert "their own image" in each.effect.note


def test_eks_takes_one_kind_of_change_of_a_node_group():
    found = change("eks", (f"{TRAIN}.root_volume_gib", 400), (f"{TRAIN}.count.max", 8))
    mixed = found[-1]
    assert (mixed.path, mixed.effect.kind) == ("node group train", "refused")
    apart = change("eks", (f"{TRAIN}.root_volume_gib", 400), ("node_groups.res.count", 6))
    assert {each.effect.kind for each in apart} == {"nodes", "in-place"}


def test_jobs_are_lost_on_eks_where_nodes_are_replaced_and_not_on_pcs():
    image = (f"{TRAIN}.root_volume_gib", 400)
    effects = {base: only(change(base, image)).effect for base in ("pcs", "eks")}
    assert {base: jobs_lost(effect, base) for base, effect in effects.items()} == {"pcs": False, "eks": True}
    assert "when the jobs of each end" in happens(effects["pcs"], "pcs")


def test_docs_say_where_the_control_planes_differ():
    models_by_name = models()
    words = in_docs(effects_of(models_by_name["NodeGroup"], "instance_type"))
    assert words.startswith("PCS: a new node group; EKS: ")
