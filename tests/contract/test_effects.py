"""What the data beside each field say of a change is what CloudFormation does between the templates.

Changes that cannot hide each other share a pair of templates. With ULTRACLUSTER_EFFECTS_ALONE in the environment, each
change has a pair of its own, which takes some minutes.
"""

import json
import os
from functools import cache

import pytest

from tests.contract.effects.changes import UNTESTED, WITHIN, Edit, edits, environment
from tests.contract.effects.models import models
from tests.contract.effects.observed import Observed, observe
from tests.synthesis import synthesise
from ultracluster.config.comparison import compare, effects_of
from ultracluster.config.effects import NEW_SECTION
from ultracluster.config.problems import InvalidSettings

ALONE = "ULTRACLUSTER_EFFECTS_ALONE" in os.environ
CONTENT = ("AWS::APS::", "AWS::SSM::Parameter", "AWS::Lambda::", "AWS::IAM::", "Custom::")
"""Types without nodes, data or network: what is in a cluster or a workspace, and the functions that bring it there."""


@cache
def old(base, first):
    return synthesise(before(base, first))


@cache
def before(base, first):
    return environment(base, json.loads(first))


def claim(edit):
    return _claim(edit.base, json.dumps(edit.first), json.dumps(edit.steps))


@cache
def _claim(base, first, steps):
    return compare(before(base, first), environment(base, (*json.loads(first), *json.loads(steps))))


@cache
def _seen(base, first, steps):
    after = environment(base, (*json.loads(first), *json.loads(steps)))
    return observe(old(base, first), synthesise(after))


def seen_between(edit):
    return _seen(edit.base, json.dumps(edit.first), json.dumps(edit.steps))


def mismatch(found, seen: Observed, names):
    """What the data say and the templates show differently; empty if they agree."""
    kinds = {each.effect.kind for each in found}
    if ("refused" in kinds) != bool(seen.refused):
        return f"data: {kinds}, templates: refused because of {seen.refused}"
    if "refused" in kinds:
        return ""
    groups = {name for each in found if each.effect.kind == "group" for name in each.nodes}
    nodes = {name for each in found if each.effect.kind == "nodes" for name in each.nodes} - groups
    if groups != seen.groups(names) or nodes != seen.nodes(names):
        return f"data: groups {groups}, nodes {nodes}; templates: {seen.groups(names)}, {seen.nodes(names)}"
    if (kinds <= {"none"}) != seen.nothing:
        return f"data: {kinds}, templates: {seen}"
    if ("creates" in kinds and not seen.added) or ("deletes" in kinds and not seen.removed):
        return f"data: {kinds}, templates: added {seen.added}, removed {seen.removed}"
    if kinds == {"content"} and (more := [kind for kind in seen.types if not kind.startswith(CONTENT)]):
        return f"data: content, templates: {more}"
    return ""


def weight(edit):
    """Which changes may share templates: a batch shows the heaviest of them only."""
    try:
        kinds = {each.effect.kind for each in claim(edit)}
    except (InvalidSettings, LookupError):
        return "not together"
    if "refused" in kinds:
        return "refused"
    if kinds & {"nodes", "group"}:
        return "nodes"
    return "none" if kinds <= {"none"} else "content" if kinds <= {"content"} else "light"


def batches(base):
    """The changes, in batches that one pair of templates proves."""
    mine = [edit for edit in edits() if edit.base == base]
    if ALONE:
        return mine
    found: list[Edit] = []
    for edit in mine:
        for i, batch in enumerate(found if len(edit.steps) == 1 else ()):
            together = edit._replace(steps=(*batch.steps, *edit.steps), mixed=True)
            if fits(edit, batch) and weight(together) == weight(edit):
                found[i] = together
                break
        else:
            found.append(edit)
    return found


def fits(edit, batch):
    if (edit.base, edit.first) != (batch.base, batch.first) or not weight(edit) == weight(batch) != "refused":
        return False
    paths = [{at for at, _ in each.steps} for each in (edit, batch)]
    if len(batch.steps) > 1 and not batch.mixed:
        return False
    return not any(one.startswith(other) or other.startswith(one) for one in paths[0] for other in paths[1])


@pytest.mark.parametrize("base", ["pcs", "eks"])
def test_data_beside_a_field_say_what_cloudformation_does(base):
    assert not {edit.name: found for batch in batches(base) for edit, found in wrong(batch)}


def wrong(batch):
    """The changes of a batch whose data are wrong, found by halving it."""
    if not (found := mismatch_of(batch)):
        return
    if not batch.mixed or len(batch.steps) == 1:
        yield batch, found
        return
    half = len(batch.steps) // 2
    parts = [each for steps in (batch.steps[:half], batch.steps[half:]) for each in wrong(batch._replace(steps=steps))]
    yield from parts or [(batch, found)]


def mismatch_of(edit):
    names = [group.name for group in before(edit.base, json.dumps(edit.first)).launched_groups]
    return mismatch(claim(edit), seen_between(edit), names)


@pytest.mark.parametrize("kind", ["none", "content", "in-place", "group", "refused"])
def test_wrong_data_are_found(kind):
    edit = Edit("pcs", (("node_groups.train.root_volume_gib", 400),))
    (each,) = claim(edit)
    false = each._replace(effect=each.effect._replace(kind=kind))
    assert not mismatch([each], seen_between(edit), ["train"])
    assert mismatch([false], seen_between(edit), ["train"])
    assert mismatch([each._replace(nodes=("login",))], seen_between(edit), ["train"])


def test_every_change_is_one():
    assert all(claim(edit) for edit in edits())


def test_every_field_is_changed_here_or_named_with_a_reason():
    changed = {each.field for edit in edits() for each in claim(edit)}
    inside = {name for name, whole in WITHIN.items() if whole in changed}
    fields = {
        (name, key)
        for name, model in models().items()
        for key in model.model_fields
        if effects_of(model, key) != NEW_SECTION and name not in inside
    }
    assert fields - changed - UNTESTED.keys() == set()
    assert fields >= UNTESTED.keys()
