"""The CDK's Helm charts and manifests: recorded with their full values, refused where the CDK's function would fail."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from eks_parts import REGION, VIEW
from kubectl_parts import BUCKET, chart, custom, kueue, manifest, platform, put_asset, resource
from localaws import local_aws
from localaws.services.kubernetes import contents
from stack_parts import Stacks

IAM = {"Capabilities": ["CAPABILITY_IAM"]}
ARN = f"arn:aws:eks:{REGION}:123456789012:cluster/train"
FAILED = "Received response status [FAILED] from custom resource. Message returned: "
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}
CHART = "apiVersion: v2\nname: mpi-operator\nversion: 0.8.0\n"
CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: example.org\n"


@pytest.fixture(scope="module")
def one_platform() -> Iterator[Stacks]:
    with local_aws():
        put_asset()
        put_asset("chart.zip", Chart_yaml=CHART, crds__jobs_yaml=CRD)
        stacks = Stacks()
        assert stacks.create(platform(), **IAM) == "CREATE_COMPLETE", stacks.events()
        yield stacks


@pytest.fixture
def stacks(one_platform: Stacks) -> Iterator[Stacks]:
    """The platform, deployed once; extra resources are removed after each test."""
    yield one_platform
    if one_platform.ids().keys() != platform().keys():
        one_platform.update(platform(), **IAM)
    assert kept("releases") == kept("objects") == []


def kept(what: str) -> list[Any]:
    found = contents(ARN)
    assert found is not None
    return list(found[what])


def fails(stacks: Stacks, words: str, **more: Any) -> None:
    assert stacks.update(platform(**more), **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    name = next(iter(more))
    assert words in stacks.event_reason(name, "CREATE_FAILED")


def test_a_release_is_recorded_with_its_full_values(stacks: Stacks) -> None:
    values = {"Fn::Join": ["", ['{"role": "', {"Fn::GetAtt": ["FunctionRole", "Arn"]}, '", "n": {"m": [1, true]}}']]}
    assert stacks.update(platform(Kueue=chart(Values=values)), **IAM) == "UPDATE_COMPLETE"
    (release,) = kept("releases")
    role = boto3.client("iam").get_role(RoleName=stacks.ids()["FunctionRole"])["Role"]["Arn"]
    assert release["values"] == {"role": role, "n": {"m": [1, True]}}
    assert (release["name"], release["namespace"], release["chart"]) == ("kueue", "kueue-system", "kueue")
    assert release["repository"] == "oci://registry.k8s.io/kueue/charts/kueue"
    assert (release["version"], release["wait"], release["timeout_seconds"]) == ("0.19.2", True, 600)
    assert (release["atomic"], release["skip_crds"], release["revision"]) == (False, False, 1)
    assert (release["stack"], release["logical_id"]) == ("stack", "Kueue")


def test_an_update_is_a_new_revision_of_the_same_resource(stacks: Stacks) -> None:
    stacks.update(platform(Kueue=chart()), **IAM)
    before = stacks.ids()["Kueue"]
    stacks.update(platform(Kueue=chart(Values='{"replicas": 3}')), **IAM)
    (release,) = kept("releases")
    assert (release["revision"], release["values"]) == (2, {"replicas": 3})
    assert stacks.ids()["Kueue"] == before


def test_objects_are_recorded_and_custom_resources_follow_their_chart(stacks: Stacks) -> None:
    queue = kueue("ClusterQueue", "train", cohortName="all")
    more = {"Kueue": chart(), "Queues": manifest("Kueue", objects=[CONFIG, queue])}
    assert stacks.update(platform(**more), **IAM) == "UPDATE_COMPLETE"
    assert kept("objects") == [CONFIG, queue]
    wider = {**queue, "spec": {"cohortName": "none"}}
    more["Queues"] = manifest("Kueue", objects=[CONFIG, wider])
    assert stacks.update(platform(**more), **IAM) == "UPDATE_COMPLETE"
    assert kept("objects") == [CONFIG, wider]


def test_a_failed_update_restores_the_values_of_a_release(stacks: Stacks) -> None:
    stacks.update(platform(Kueue=chart()), **IAM)
    more = {"Kueue": chart(Values='{"replicas": 5}'), "Bad": manifest("Kueue", objects=[kueue("Cohort", "")])}
    assert stacks.update(platform(**more), **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    (release,) = kept("releases")
    assert (release["values"], release["revision"]) == ({"replicas": 2}, 3)


def test_overwrite_allows_existing_objects(stacks: Stacks) -> None:
    first = {"First": manifest(objects=[CONFIG])}
    fails(stacks, 'ConfigMap "x" already exists', Second=manifest("First", objects=[CONFIG]), **first)
    other = {**CONFIG, "data": {"a": "2"}}
    second = {"Second": manifest("First", objects=[other], Overwrite=True)}
    assert stacks.update(platform(**first, **second), **IAM) == "UPDATE_COMPLETE"
    assert kept("objects") == [other]


def test_a_prune_label_removes_objects_that_left_the_manifest(stacks: Stacks) -> None:
    def labelled(name: str) -> dict[str, Any]:
        return {**CONFIG, "metadata": {"name": name, "labels": {"aws.cdk.eks/prune-1": ""}}}

    label = {"PruneLabel": "aws.cdk.eks/prune-1"}
    both = [labelled("x"), labelled("y")]
    stacks.update(platform(Objects=manifest(objects=both, **label)), **IAM)
    stacks.update(platform(Objects=manifest(objects=both[:1], **label)), **IAM)
    assert kept("objects") == both[:1]


def test_a_chart_may_be_an_asset_with_definitions_of_its_own(stacks: Stacks) -> None:
    local = {"Chart": None, "Repository": None, "Version": None, "ChartAssetURL": f"s3://{BUCKET}/chart.zip"}
    job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "j"}}
    own = {"apiVersion": "example.org/v1", "kind": "Own", "metadata": {"name": "o"}}
    more = {"Mpi": chart(Release="mpi", **local), "Jobs": manifest("Mpi", objects=[job, own])}
    assert stacks.update(platform(**more), **IAM) == "UPDATE_COMPLETE"
    assert kept("releases")[0]["chart"] == "mpi-operator"
    missing = {**local, "ChartAssetURL": f"s3://{BUCKET}/code.zip"}
    fails(stacks, "Chart.yaml file is missing", Other=chart(**missing))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"Version": None}, "an OCI chart needs a Version"),
        ({"Repository": "oci://registry.k8s.io/kueue/charts"}, "ends with the chart's name, kueue"),
        ({"Repository": None}, "no Repository is set"),
        ({"Chart": None}, "chart or chartAsset must be specified"),
        ({"ChartAssetURL": f"s3://{BUCKET}/chart.zip"}, "cannot be combined with Chart, Repository"),
        ({"Timeout": "901s"}, "longer than the function's timeout of 900 seconds"),
        ({"Timeout": "16m"}, "longer than the function's timeout of 900 seconds"),
        ({"Timeout": "soon"}, 'invalid argument "soon"'),
        ({"Values": "[1]"}, "Values is not a JSON object"),
        ({"Values": "{"}, "Values is not JSON"),
        ({"Release": "Kueue_1"}, "release name 'Kueue_1' is invalid"),
        ({"CreateNamespace": None, "Namespace": "team"}, 'namespaces "team" not found'),
        ({"ClusterName": "other"}, "No cluster found for name: other"),
    ],
)
def test_charts_that_helm_refuses(stacks: Stacks, changes: dict[str, Any], words: str) -> None:
    fails(stacks, words, Kueue=chart(**changes))
    assert kept("releases") == []


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ({}, "Manifest is not a JSON list"),
        ([{"kind": "ConfigMap"}], "lacks apiVersion, metadata.name"),
        ([kueue("ClusterQueue", "q")], 'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1beta2"'),
        ([CONFIG, {**CONFIG, "metadata": {"name": "y", "namespace": "team"}}], 'namespaces "team" not found'),
        ([{**CONFIG, "data": {"a": "x" * 262_144}}], "Too long: must have at most 262144 bytes"),
    ],
)
def test_manifests_that_kubectl_refuses(stacks: Stacks, objects: Any, words: str) -> None:
    fails(stacks, FAILED, Bad=manifest(objects=objects))
    assert words in stacks.event_reason("Bad", "CREATE_FAILED")
    assert kept("objects") == []


def test_the_functions_role_needs_to_be_cluster_admin(stacks: Stacks) -> None:
    resources = platform(Objects=manifest(objects=[CONFIG]))
    resources["Entry"]["Properties"]["AccessPolicies"][0]["PolicyArn"] = VIEW
    assert stacks.update(resources, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "(Unauthorized)" in stacks.event_reason("Objects", "CREATE_FAILED")


def test_a_private_endpoint_is_reached_if_a_security_group_allows_it(stacks: Stacks) -> None:
    resources = platform()
    resources["Admitted"]["Properties"].update(FromPort=80, ToPort=80)
    assert stacks.update(resources, **IAM) == "UPDATE_COMPLETE"
    resources["Objects"] = manifest(objects=[CONFIG])
    assert stacks.update(resources, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "not allowed on port 443 by any of" in stacks.event_reason("Objects", "CREATE_FAILED")
    assert stacks.update(platform(), **IAM) == "UPDATE_COMPLETE"


def test_a_private_endpoint_is_not_reached_from_outside_its_vpc(stacks: Stacks) -> None:
    resources = platform(Objects=manifest(objects=[CONFIG]))
    del resources["Kubectl"]["Properties"]["VpcConfig"]
    assert stacks.update(resources, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "the endpoint of train is private, and the function is not in VPC" in stacks.event_reason(
        "Objects", "CREATE_FAILED"
    )


def test_the_service_token_must_be_an_existing_function(stacks: Stacks) -> None:
    nobody = f"arn:aws:lambda:{REGION}:123456789012:function:nobody"
    fails(stacks, f"function {nobody} does not exist", Objects=manifest(objects=[CONFIG], ServiceToken=nobody))
    topic = f"arn:aws:sns:{REGION}:123456789012:topic"
    fails(stacks, "must be a Lambda function", Objects=manifest(objects=[CONFIG], ServiceToken=topic))


def test_an_unknown_property_fails_by_name(stacks: Stacks) -> None:
    fails(stacks, "does not support Colour", Kueue=chart(Colour="red"))


def test_other_custom_resources_still_run_their_own_code(stacks: Stacks) -> None:
    patch = custom("KubernetesPatch", ResourceName="x")
    fails(stacks, "runs only Python", Patch=patch)


def test_contents_of_a_cluster_are_json(stacks: Stacks) -> None:
    stacks.update(platform(Kueue=chart(), Objects=manifest(objects=[CONFIG])), **IAM)
    found = json.loads(json.dumps(contents(ARN)))
    assert (found["releases"][0]["name"], found["objects"]) == ("kueue", [CONFIG])
    assert {"default", "kueue-system"} <= set(found["namespaces"])
    assert contents(ARN + "x") is None
    assert contents("train") is None


def test_layers_and_the_network_of_a_function_are_read_back(stacks: Stacks) -> None:
    lambdas, ids = boto3.client("lambda", REGION), stacks.ids()
    found = lambdas.get_function_configuration(FunctionName=ids["Kubectl"])
    assert [layer["Arn"] for layer in found["Layers"]] == [ids["Layer"]]
    network = found["VpcConfig"]
    assert (network["VpcId"], network["SubnetIds"]) == (ids["Vpc"], [ids["SubnetA"], ids["SubnetB"]])


def test_a_functions_subnets_and_groups_must_be_in_one_vpc(stacks: Stacks) -> None:
    resources = platform(Other=resource("EC2::VPC", CidrBlock="10.1.0.0/16"))
    resources["Access"]["Properties"]["VpcId"] = {"Ref": "Other"}
    assert stacks.update(resources, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "are not in one VPC" in stacks.event_reason("Kubectl", "UPDATE_FAILED")


KAI = {
    "Release": "kai-scheduler",
    "Chart": "kai-scheduler",
    "Repository": "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler",
    "Version": "v0.17.0",
    "Namespace": "kai-scheduler",
}
PATIENT = """
import time

import index


def handler(event, context):
    while True:
        try:
            return index.handler(event, context)
        except Exception as error:
            if "failed calling webhook" not in str(error):
                raise
            time.sleep(10)
"""
QUEUE = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "fleet"}, "spec": {}}


def repeating(handler: str = "patient.handler") -> dict[str, Any]:
    """The platform with a handler that repeats in a layer of the kubectl function."""
    put_asset("retries.zip", python__patient_py=PATIENT)
    whole = platform()
    whole["Retries"] = resource("Lambda::LayerVersion", Content={"S3Bucket": BUCKET, "S3Key": "retries.zip"})
    whole["Kubectl"]["Properties"] |= {"Handler": handler, "Layers": [{"Ref": "Layer"}, {"Ref": "Retries"}]}
    return whole


def test_a_webhook_that_is_not_ready_yet_refuses_an_object(stacks: Stacks) -> None:
    """The CDK's own handler does not try again."""
    fails(stacks, "failed calling webhook", Queues=manifest("Kai", objects=[QUEUE]), Kai=chart(**KAI))


def test_a_handler_in_a_layer_tries_again_until_the_webhook_is_ready(stacks: Stacks) -> None:
    more = {"Kai": chart(**KAI), "Queues": manifest("Kai", objects=[QUEUE])}
    assert stacks.update({**repeating(), **more}, **IAM) == "UPDATE_COMPLETE", stacks.events()
    assert kept("objects") == [QUEUE]


def test_a_handler_in_a_layer_does_not_repeat_other_errors(stacks: Stacks) -> None:
    lost = {**CONFIG, "metadata": {"name": "x", "namespace": "nowhere"}}
    broken = {**repeating(), "Objects": manifest(objects=[lost])}
    assert stacks.update(broken, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert 'namespaces "nowhere" not found' in stacks.event_reason("Objects", "CREATE_FAILED")


def test_a_handler_that_no_layer_holds_is_not_found(stacks: Stacks) -> None:
    broken = {**repeating("impatient.handler"), "Objects": manifest(objects=[CONFIG])}
    assert stacks.update(broken, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Unable to import module 'impatient'" in stacks.event_reason("Objects", "CREATE_FAILED")


def test_the_end_of_a_job_is_its_status_and_a_job_that_does_not_exist_fails(stacks: Stacks) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "install"}, "spec": {}}
    place = {"ObjectType": "job", "ObjectNamespace": "default", "JsonPath": ".status.succeeded", "TimeoutSeconds": "60"}
    end = custom("KubernetesObjectValue", "Job", ObjectName="install", **place)
    assert stacks.update(platform(Job=manifest(objects=[job]), End=end), **IAM) == "UPDATE_COMPLETE", stacks.events()
    lost = custom("KubernetesObjectValue", ObjectName="lost", **place)
    fails(stacks, "Timeout waiting for output from kubectl command", Lost=lost)
