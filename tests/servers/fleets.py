"""A fleet on the control plane: what a deployment applies, nodes without machines, and jobs on them."""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tests.servers.api import Api, Denied, Object, Result, until
from tests.servers.control_plane import ControlPlane
from tests.servers.generated import deployed
from tests.servers.nodes import Kubelet
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import TEAM, team_group
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Objects, Release
from ultracluster.kubernetes.team_policy import NAME as TEAM_POLICY

WITH_PODS = ("DaemonSet", "Deployment", "Job")
"""Kinds of a deployment that would run pods of the platform."""

BINDING = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
JOBSET, WORKLOAD = "jobset.x-k8s.io/v1alpha2", "kueue.x-k8s.io/v1beta2"


class Fleet:
    """An environment on `plane`."""

    def __init__(self, plane: ControlPlane, environment: Environment, kubelet: Kubelet) -> None:
        self.plane, self.api, self.environment, self.kubelet = plane, plane.api, environment, kubelet

    @property
    def teams(self) -> list[str]:
        """Names of teams, which are their namespaces."""
        return [team.name for team in EksEnvironment.from_environment(self.environment).teams]

    def deploy(self, environment: Environment | None = None) -> None:
        """Applies the objects of this or another environment. What a test changed becomes what it was."""
        for obj in installed(environment or self.environment):
            self.api.apply(obj)
        for team in self.teams:
            self.until(lambda team=team: self.api.list("v1", "ServiceAccount", team), f"a service account in {team}")
            self.settled(team)

    def settled(self, queue: str) -> None:
        """Waits until Kueue has seen the latest change of a ClusterQueue."""

        def seen() -> bool:
            found = self.api.get(WORKLOAD, "ClusterQueue", queue)
            conditions = found.get("status", {}).get("conditions") or ()
            generation = found["metadata"]["generation"]
            return any((each["type"], each.get("observedGeneration")) == ("Active", generation) for each in conditions)

        self.until(seen, f"a ClusterQueue {queue} that Kueue has read")

    def member(self, team: str) -> Api:
        """A member of a team, once the API server has read the team's rights."""
        user = self.api.as_user("alice", team_group(team))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": team}}
        pod["spec"] = {"containers": [{"name": "tried", "image": "tried"}]}

        def may() -> bool:
            try:
                return bool(user.create(pod, dry_run=True) and user.list("v1", "Node") is not None)
            except Denied:
                return False

        self.until(may, f"rights of the members of {team}")
        return user

    def until(self, condition: Callable[[], Result], what: str) -> Result:
        """The first true result of `condition`, while all servers live."""
        return until(condition, what, self._alive)

    def submit(self, objects: Iterable[Object]) -> Object:
        """Creates the objects of a job; returns the JobSet."""
        for obj in sorted(objects, key=lambda obj: obj["kind"] == "JobSet"):
            if obj["kind"] == "JobSet":
                created = self.api.create(obj)
            else:
                self.api.apply(obj)
        return created

    def pods(self, job: Object, phase: str = "Running") -> list[Object]:
        """Pods of a JobSet in a phase, without those that are being deleted."""
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        found = self.api.list("v1", "Pod", namespace, labelSelector=f"jobset.sigs.k8s.io/jobset-name={name}")
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in alive if pod["status"].get("phase") == phase]

    def runs(self, job: Object, nodes: int) -> list[Object]:
        """The pods of a job, once all of them run."""
        what = f"{nodes} pods of {job['metadata']['name']}"
        return self.until(lambda: found if len(found := self.pods(job)) == nodes else None, what)

    def condition(self, job: Object, kind: str, status: str = "True") -> Object | None:
        """The condition `kind` of the workload with which Kueue counts a job, if it has this status."""
        uid = job["metadata"]["uid"]
        for workload in self.api.list(WORKLOAD, "Workload", job["metadata"]["namespace"]):
            if any(owner["uid"] == uid for owner in workload["metadata"].get("ownerReferences", ())):
                found = (each for each in workload.get("status", {}).get("conditions") or ())
                return next((each for each in found if (each["type"], each["status"]) == (kind, status)), None)
        return None

    def evicted(self, job: Object, reason: str) -> Object:
        """The condition of a job's workload that says `reason` for its eviction."""

        def seen() -> Object | None:
            found = self.condition(job, "Preempted")
            return found if found and found["reason"] == reason and self.condition(job, "Evicted") else None

        return self.until(seen, f"{job['metadata']['name']} evicted for {reason}")

    def waits_for(self, job: Object, lack: str) -> None:
        """Waits until Kueue says that a job has no quota, because of `lack`."""

        def seen() -> bool:
            found = self.condition(job, "QuotaReserved", "False")
            return found is not None and lack in found["message"]

        self.until(seen, f"{job['metadata']['name']} waiting for {lack}")

    def clear(self, *namespaces: str) -> None:
        """Deletes all jobs in namespaces, and waits until nothing of them is left."""
        for namespace in namespaces:
            for job in self.api.list(JOBSET, "JobSet", namespace):
                self._gone(job["metadata"]["name"], namespace)
            # the root certificate among them is written again
            self.api.call("DELETE", self.api.path("v1", "ConfigMap", namespace))
            self.api.call("DELETE", self.api.path("resource.k8s.io/v1", "ResourceClaimTemplate", namespace))
        for namespace in namespaces:
            self.until(lambda namespace=namespace: not self.api.list("v1", "Pod", namespace), f"no pod in {namespace}")
            left = f"no workload in {namespace}"
            self.until(lambda namespace=namespace: not self.api.list(WORKLOAD, "Workload", namespace), left)

    def _gone(self, name: str, namespace: str) -> None:
        try:
            self.api.delete(JOBSET, "JobSet", name, namespace)
        except Denied as denied:
            if "not found" not in str(denied):
                raise

    def _alive(self) -> None:
        self.plane.alive()
        self.kubelet.alive()


def installed(environment: Environment) -> Iterator[Object]:
    """What a deployment applies, without the platform's own pods."""
    for part in ordered_parts(EksEnvironment.from_environment(environment), deployed(environment)):
        if isinstance(part, Objects):
            yield from (obj for obj in part.items if obj["kind"] not in WITH_PODS)
        elif isinstance(part, Release):
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": part.chart.namespace}}


@contextmanager
def running(plane: ControlPlane, environment: Environment, nodes: Iterable[Object]) -> Iterator[Fleet]:
    """A fleet with `nodes`. Afterwards they leave, and its admission policies bind nothing any more."""
    names = []
    for each in nodes:
        plane.api.create(each)
        names.append(each["metadata"]["name"])
    try:
        with Kubelet(plane.api) as kubelet:
            fleet = Fleet(plane, environment, kubelet)
            fleet.deploy()
            yield fleet
    finally:
        for name in names:
            plane.api.delete("v1", "Node", name)
        forget_policies(plane, start="")


def forget_policies(plane: ControlPlane, start: str = TEAM_POLICY) -> None:
    """Ends policies whose names have this start, and waits until that for teams is out of force."""
    names = [each["metadata"]["name"] for each in plane.api.list(*BINDING)]
    for name in (name for name in names if name.startswith(start)):
        plane.api.delete(*BINDING, name)
    for namespace in plane.api.list("v1", "Namespace", labelSelector=TEAM):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "tried", "namespace": namespace["metadata"]["name"]},
            "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "a", "image": "a"}]},
        }
        until(lambda pod=pod: _accepted(plane, pod), "a pod without the policy", plane.alive)


def beside_policy(fleet: Fleet, obj: Object) -> Object:
    """Creates an object that the policy for teams refuses, as it could before the policy."""
    forget_policies(fleet.plane)

    def made() -> Object | None:
        try:
            return fleet.api.create(obj)
        except Denied as denied:
            if TEAM_POLICY not in str(denied):
                raise
            return None

    return fleet.until(made, "a pod that the policy would refuse")


def _accepted(plane: ControlPlane, obj: Object) -> bool:
    try:
        return bool(plane.api.create(obj, dry_run=True))
    except Denied as denied:
        if TEAM_POLICY not in str(denied):
            raise
        return False


def moved(objects: Iterable[Object], namespace: str) -> list[Object]:
    """The objects of a job in a namespace that is no team's: without the team's queue and claims."""
    found = copy.deepcopy(list(objects))
    for obj in found:
        obj["metadata"]["namespace"] = namespace
        obj["metadata"].pop("labels", None)
        if obj["kind"] == "JobSet":
            (replicated,) = obj["spec"]["replicatedJobs"]
            pod = replicated["template"]["spec"]["template"]["spec"]
            for volume in pod["volumes"]:
                if volume.pop("persistentVolumeClaim", None):
                    volume["emptyDir"] = {}
    return found
