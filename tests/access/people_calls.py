"""Rows for people: the access host, and the machines that read the list of users or the secret of a directory."""

from tests.access.account import ACCOUNT, Account, Role
from tests.access.shared_calls import OURS
from tests.access.slurm_calls import _via, powerless, session_manager
from tests.access.table import TRUSTS_THE_ACCOUNT, Call, may, never
from ultracluster.config.directory import Directory
from ultracluster.config.environment import Environment

HOST = "Access host"
USERS = "Systems Manager User Guide, Restricting access to Parameter Store parameters using IAM policies"
SECRETS = "Secrets Manager User Guide, Secret encryption and decryption; policy examples"


def people_calls(account: Account, environment: Environment) -> list[Call]:
    """Rows for the access host, and for every role of machines where the file has users or a directory."""
    access, hosts = environment.access, [role for role in account.roles.values() if role.description == HOST]
    assert len(hosts) == bool(access.access_host)
    calls = [call for role in hosts for call in host(account, role)]
    readers = [*hosts, *pcs_roles(account)]
    if access.users:
        calls += [call for role in readers for call in reads_users(account, environment.name, role)]
    if access.directory:
        calls += [call for role in readers for call in reads_secret(account, access.directory, role)]
    if access.users or access.directory:
        assert readers, "no machine knows the users"
        strangers = [role for role in account.roles.values() if role not in readers]
        calls += [call for role in strangers for call in never(role, *_entrances(account, environment), OURS)]
    return calls


def pcs_roles(account: Account) -> list[Role]:
    """Roles of nodes and login nodes of PCS."""
    named = {found.properties["IamInstanceProfileArn"] for found in account.of_type("AWS::PCS::ComputeNodeGroup")}
    profiles = [each for each in account.of_type("AWS::IAM::InstanceProfile") if named & {each.arn, each.ref}]
    return [account.role_of(profile.properties["Roles"][0]) for profile in profiles]


def host(account: Account, role: Role) -> list[Call]:
    """The access host forwards connections of people, and does nothing to the account."""
    objects = [f"{found.arn}/a" for found in account.of_type("AWS::S3::Bucket")]
    keys = [found.arn for found in account.of_type("AWS::KMS::Key")]
    calls = [
        *session_manager(account, role),
        *powerless(account, role),
        *may("ec2.amazonaws.com", "sts:AssumeRole", role.arn, "EC2 User Guide, IAM roles for Amazon EC2"),
        *never(("pods.eks.amazonaws.com"), "sts:AssumeRole", role.arn, OURS),
        *never(role, ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), objects, "data is for jobs"),
        *never(role, ("kms:Decrypt", "kms:GenerateDataKey"), keys, "data is for jobs"),
    ]
    for cluster in account.of_type("AWS::EKS::Cluster"):
        calls += never(role, ("eks:DescribeCluster", "eks:CreateAccessEntry"), cluster.arn, "people sign in themselves")
    return calls


def reads_users(account: Account, name: str, role: Role) -> list[Call]:
    """The parameters of the environment's list, which no machine writes."""
    start = f"arn:aws:ssm:{account.region}:{ACCOUNT}:parameter/ultracluster"
    listed, reads = [f"{start}/{name}/users", f"{start}/{name}/users/1"], ("ssm:GetParameter", "ssm:GetParameters")
    other = [f"{start}/another/users", f"{start}/another/users/1", f"{start}/{name}/users2", f"{start}/{name}"]
    return [
        *may(role, reads, listed, USERS, via=_via(account, "ssm")),
        *never(role, reads, other, OURS),
        *never(role, ("ssm:PutParameter", "ssm:DeleteParameter"), listed, "who writes the list is root everywhere"),
        *never(role, "ssm:GetParameterHistory", listed, OURS),
    ]


def reads_secret(account: Account, directory: Directory, role: Role) -> list[Call]:
    """The secret of the directory, and its key through Secrets Manager only."""
    secret = directory.secret_arn
    other = [f"{secret[:-7]}-another-{secret[-6:]}", secret.replace(ACCOUNT, "444455556666")]
    calls = [
        *may(role, "secretsmanager:GetSecretValue", secret, SECRETS),
        *never(role, "secretsmanager:GetSecretValue", other, OURS),
        *never(role, ("secretsmanager:PutSecretValue", "secretsmanager:DeleteSecret"), secret, OURS),
    ]
    if key := directory.secret_key_arn:
        region, trusted = key.split(":")[3], {"resource_policy": TRUSTS_THE_ACCOUNT}
        through = {"kms:ViaService": f"secretsmanager.{region}.amazonaws.com"}
        elsewhere = {"kms:ViaService": f"s3.{region}.amazonaws.com"}
        calls += may(role, "kms:Decrypt", key, SECRETS, context=through, **trusted)
        calls += never(role, "kms:Decrypt", key, "only through Secrets Manager", context=elsewhere, **trusted)
        calls += never(role, ("kms:GenerateDataKey", "kms:CreateGrant"), key, OURS, context=through, **trusted)
    return calls


def _entrances(account: Account, environment: Environment) -> tuple[str, str]:
    """Action and resource of who logs in: the list, or the secret."""
    if directory := environment.access.directory:
        return "secretsmanager:GetSecretValue", directory.secret_arn
    arn = f"arn:aws:ssm:{account.region}:{ACCOUNT}:parameter/ultracluster/{environment.name}/users"
    return "ssm:GetParameter", arn
