"""Effects of fields of the environment, its network, storage, access and observability that depend on values."""

from ultracluster.config.effects import ByValue, Change, Effect, Effects, On, refused

ANOTHER = "deploy a second environment, move jobs and data to it, then destroy this one"
COPY = "add a second file system under storage.more, deploy, copy the data, then point jobs at it and remove this one"
JOBS_FIRST = "let the jobs on these nodes end, and submit no new ones to them"
NEW_NODES = Effect("nodes", "group")
NEW_GROUP = Effect("group", "group", first=JOBS_FIRST)
FLEET = Effect("nodes", "fleet")
IN_PLACE, CONTENT, NOTHING = Effect("in-place"), Effect("content"), Effect("none")

ENVIRONMENT = Effects(refused(ANOTHER, "the stacks would be those of another environment"))
PLACE = Effects(refused(ANOTHER, "subnets, file systems and the cluster would be replaced"))
ANOTHER_KIND = refused(ANOTHER, "another service: the old cluster is not migrated")
KIND = Effects(ANOTHER_KIND)


def _account(change: Change) -> Effect:
    if change.old and change.new:
        return refused(ANOTHER, "the stacks would be in another account")
    first = "deploy with credentials of the account that the stacks are in"
    if change.before.control_plane.type == "eks" and any(group.bootstrap for group in change.before.node_groups):
        # user data contain the name of the bucket of scripts: a token without an account, a text with one
        return Effect("nodes", "scripts", first=first)
    return Effect("none", first=first)


ACCOUNT = Effects(
    ByValue(
        "refused from one account to another; adding the account that the stacks are in changes nothing, but replaces "
        "nodes with boot scripts on EKS",
        _account,
    )
)


def _retain(change: Change) -> Effect:
    if change.new:
        return Effect("in-place", note="after this deployment, deleting the stacks retains data")
    return Effect("in-place", note="after this deployment, deleting the stacks deletes all data")


RETAIN = Effects(
    ByValue("in place; deleting the stacks follows the last deployment", _retain),
)

# network


def _endpoints(change: Change) -> Effect:
    if change.old and change.before.access.access_host and change.after.access.access_host:
        return refused(
            "remove access.host, deploy, then remove the endpoints and add the host again",
            "the access host imports the endpoints' security group",
        )
    return Effect(
        "in-place", note="interface endpoints are created or deleted; calls go through NAT gateways meanwhile"
    )


ENDPOINTS = Effects(ByValue("in place; with an access host, removed in two steps", _endpoints))
CONTROL_PLANE_SUBNETS = Effects(
    On(
        pcs=refused(ANOTHER, "PCS cannot change the subnet of a cluster"),
        eks=Effect("group", "system", note="the cluster moves its network interfaces in place"),
    )
)
ZONE_SUBNETS = Effects(
    On(
        pcs=Effect("in-place", note="groups of that zone launch new nodes in the new subnet; running ones stay"),
        eks=Effect("group", "zones", first=JOBS_FIRST),
    )
)

# storage

NEW_FILE_SYSTEM = On(
    pcs=Effect("nodes", "fleet", note="the file system is created and mounted"),
    eks=Effect("creates", note="the file system, and volumes of teams"),
)


def _what_stays(change: Change, retained: str) -> str:
    """What CloudFormation does to data that leaves a stack, by the policy in the deployed template."""
    return retained if change.before.retain else "that deletes it with its data, since retain is false: copy it first"


def _removed_file_system(change: Change) -> Effect:
    on_pcs = change.before.control_plane.type == "pcs"
    if not getattr(change.old, "existing", None):
        stacks = "NAME-compute" if on_pcs else "NAME-platform"
        links = getattr(change.old, "links", ())
        first = "npx cdk destroy NAME-links -c env=NAME with the old file, then " if links else ""
        alone = ""
        if getattr(change.old, "type", "lustre") != "efs":  # which has no alarms, for it has no capacity
            stacks += " NAME-alerts"
            if not change.after.observability.collects_metrics:
                alone = " (npx cdk destroy NAME-alerts with the old file, if the new one has no such stack)"
        return refused(
            f"end the jobs that use it, then {first}npx cdk deploy --exclusively {stacks} -c env=NAME{alone}, then all "
            "stacks; " + _what_stays(change, "it stays with its data outside the stacks"),
            "stacks that mount or watch it import it until they are deployed",
        )
    if on_pcs:
        return Effect("nodes", "fleet", note="nodes no longer mount it")
    return Effect("deletes", note="volumes of teams", first="end the jobs that mount it")


REMOVED_FILE_SYSTEM = ByValue(
    "a new one in two steps, which retain it with its data, or delete it with `retain: false`; an existing one at once",
    _removed_file_system,
)
OTHER_FILE_SYSTEM = refused(COPY, "another type is a new file system")
FILE_SYSTEM = Effects(OTHER_FILE_SYSTEM, added=NEW_FILE_SYSTEM, removed=REMOVED_FILE_SYSTEM)
FILE_SYSTEM_KIND = Effects(OTHER_FILE_SYSTEM)
_VOLUMES = Effect("content", note="volumes of teams; pods keep their mounts until they end")
MOUNTED = Effects(On(pcs=FLEET, eks=_VOLUMES))
MOUNT_PATH = Effects(On(pcs=FLEET, eks=Effect("none", note="printed jobs mount it at the new path")))


def _existing(change: Change) -> Effect:
    if change.old and change.new:
        return FLEET if change.before.control_plane.type == "pcs" else _VOLUMES
    return refused(COPY, "the new and the existing file system are different ones")


EXISTING_FILE_SYSTEM = Effects(
    ByValue("the other file system is mounted; refused between an existing and a new one", _existing)
)


_STORAGE = Effect("in-place", note="FSx allows one storage change in six hours")


def _capacity(change: Change) -> Effect:
    if change.old is None or change.new is None:
        return refused(COPY, "another storage type")
    if change.new < change.old:
        return refused(COPY, "FSx never shrinks a file system")
    if getattr(change.owner, "type", "") == "openzfs" and change.new * 10 < change.old * 11:
        return refused(
            f"set capacity_gib to {-(-change.old * 11 // 10)} or more", "FSx grows OpenZFS by a tenth or more"
        )
    return _STORAGE


CAPACITY = Effects(ByValue("in place when higher; refused when lower, because FSx never shrinks", _capacity))


def _tier(change: Change) -> Effect:
    if change.owner.efa:
        return refused(COPY, "FSx cannot change the throughput tier of a file system with EFA")
    return _STORAGE


TIER = Effects(ByValue("in place; refused with efa", _tier))


def _only_higher(change: Change) -> Effect:
    values = change.old, change.new
    if all(isinstance(value, int) for value in values) and change.new < change.old:
        return refused(COPY, "FSx only raises it")
    return Effect("in-place", note="FSx allows one such change in six hours")


ONLY_HIGHER = Effects(ByValue("in place when higher; refused when lower", _only_higher))
OPENZFS_THROUGHPUT = Effects(Effect("in-place", note="clients pause for up to a minute"))


def _efa(change: Change) -> Effect:
    if getattr(change.owner, "existing", None):
        return Effect("nodes", "efa") if change.before.control_plane.type == "pcs" else IN_PLACE
    return refused(COPY, "EFA is chosen when a file system is created")


FILE_SYSTEM_EFA = Effects(ByValue("refused; for an existing file system, nodes mount it differently", _efa))
OTHER_LINK = refused(
    "remove the link, deploy, add the changed link, deploy", "the new association would overlap the old one"
)


def _removed_link(change: Change) -> Effect:
    links, bucket = change.owner.links, change.before.storage.buckets.get(change.old.bucket)
    if not links:
        first = "npx cdk destroy NAME-links -c env=NAME with the old file, then all stacks; files and objects stay"
        return refused(first, "the stack of links leaves the app with the last one, and no deployment deletes it")
    shared = change.before.control_plane.type == "eks" or any(link.bucket == change.old.bucket for link in links)
    if shared or bucket is None or bucket.existing:
        return Effect("deletes", note="files and objects stay")
    first = "npx cdk deploy --exclusively NAME-links -c env=NAME, then all stacks; files and objects stay"
    return refused(first, "NAME-links imports the name of the bucket until it is deployed")


LINK = Effects(
    OTHER_LINK,
    added=Effect("creates"),
    removed=ByValue("deleted; the last one of a bucket on PCS, and the last of all, in two steps", _removed_link),
)
LINK_KEY = Effects(OTHER_LINK)


def _imports(change: Change) -> Effect:
    # import of existing objects (BatchImportMetaDataOnCreate) applies at creation of an association only
    return IN_PLACE if bool(change.old) == bool(change.new) else OTHER_LINK


IMPORTS = Effects(ByValue("in place; the first or last event in two steps", _imports))


def _exports(change: Change) -> Effect:
    if bool(change.old) == bool(change.new):
        return IN_PLACE
    if change.before.control_plane.type == "eks":
        return Effect("in-place", note="folders of teams in it are created, or no longer created")
    return Effect("nodes", "login", note="login nodes change the permissions of the folder")


EXPORTS = Effects(ByValue("in place; on PCS the first or last event replaces login nodes", _exports))


def _bucket(change: Change) -> Effect:
    if change.old and change.new:
        return Effect("in-place", note="permissions of nodes and pods follow")
    return refused(
        "add the other bucket under a key of its own, copy the objects, then remove this one",
        "the new and the existing bucket are different ones",
    )


BUCKET_EXISTING = Effects(ByValue("in place; refused between a new and an existing bucket", _bucket))


def _removed_bucket(change: Change) -> Effect:
    if change.old.existing:
        return Effect("in-place", note="permissions of nodes and pods are removed")
    return refused(
        "npx cdk deploy --exclusively NAME-compute NAME-links -c env=NAME (on EKS NAME-platform NAME-links), "
        "then all stacks; " + _what_stays(change, "the bucket and its objects stay"),
        "stacks import the bucket until they are deployed",
    )


BUCKETS = Effects(
    IN_PLACE,
    added=Effect("creates"),
    removed=ByValue(
        "a new bucket in two steps, which retain it with its objects, or delete it with `retain: false`; an existing "
        "one in place",
        _removed_bucket,
    ),
)

# people and observability

USERS = Effects(
    Effect("content", note="nodes and the access host read the list within ten minutes"),
    added=On(pcs=FLEET, eks=IN_PLACE),
    removed=On(pcs=FLEET, eks=IN_PLACE),
    whole=True,
)


def _directory(change: Change) -> Effect:
    both = [each.model_copy(update={"secret_key_arn": None}) for each in (change.old, change.new) if each]
    return IN_PLACE if len(both) > 1 and both[0] == both[1] else FLEET


DIRECTORY = Effects(
    On(pcs=ByValue("replaces all nodes; the key of the secret in place", _directory), eks=IN_PLACE),
    whole=True,
)
HOST = Effects(
    Effect("in-place", note="the access host is created, replaced or deleted; nodes stay"),
    whole=True,
)
COLLECTED = Effects(On(pcs=Effect("nodes", "fleet", note="agents on nodes read it at boot"), eks=CONTENT))


def _auto_repair(change: Change) -> Effect:
    """Without the key, EKS repairs nodes, and on PCS no alert drains any."""
    if change.before.control_plane.type == "eks":
        return NOTHING if (change.old is False) == (change.new is False) else IN_PLACE
    if bool(change.old) == bool(change.new):
        return NOTHING
    return IN_PLACE if change.new else Effect("in-place", note="stack NAME-repair stays, without alerts: delete it")


AUTO_REPAIR = Effects(ByValue("in place", _auto_repair))


def _metrics(change: Change) -> Effect:
    on_pcs = change.before.control_plane.type == "pcs"
    if change.new == "none":
        note = "agents are removed" if on_pcs else "exporters and the scraper are deleted"
    elif change.old == "none":
        note = "agents start" if on_pcs else "exporters and a scraper are created"
    else:
        note = "agents write to the other workspace" if on_pcs else "the scraper is replaced"
    stays = change.old is None
    # the CDK CLI does not delete stacks that are no longer in the app
    note += "; the stack of the workspace stays until you delete it" if stays else ""
    return Effect("nodes", "fleet", note=note) if on_pcs else Effect("in-place", note=note)


METRICS = Effects(
    On(
        pcs=ByValue("replaces nodes; a new workspace stays with its metrics", _metrics),
        eks=ByValue("in place; a new workspace stays with its metrics", _metrics),
    )
)
GRAFANA = Effects(
    Effect("in-place", note="a workspace is created; one that was created before stays until its stack is deleted"),
)
