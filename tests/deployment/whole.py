"""Tests of every deployed environment, whichever control plane it has. The files of the control planes run them."""

from tests.deployment.in_process import FILE_OF, client
from tests.synthesis import templates
from ultracluster.catalog import interface_layout


class WholeEnvironment:
    """Tests that take a fixture `deployed`: a deployed environment."""

    def test_every_stack_is_complete(self, deployed):
        cloudformation = client(deployed, "cloudformation")
        stacks = {stack["StackName"]: stack["StackStatus"] for stack in cloudformation.describe_stacks()["Stacks"]}
        failed = {
            event["LogicalResourceId"]: event.get("ResourceStatusReason")
            for name in stacks
            for event in cloudformation.describe_stack_events(StackName=name)["StackEvents"]
            if event["ResourceStatus"].endswith("_FAILED")
        }
        assert set(stacks.values()) == {"CREATE_COMPLETE"}, failed
        assert {name.removeprefix(f"{deployed.name}-") for name in stacks} == set(templates(FILE_OF[deployed.name]))

    def test_every_node_group_launches_with_all_its_efa_interfaces(self, deployed):
        ec2 = client(deployed, "ec2")
        versions = [
            ec2.describe_launch_template_versions(LaunchTemplateId=found["LaunchTemplateId"])["LaunchTemplateVersions"][
                0
            ]
            for found in ec2.describe_launch_templates()["LaunchTemplates"]
        ]
        wired = sorted(
            (data["InstanceType"], sum(n["InterfaceType"].startswith("efa") for n in data["NetworkInterfaces"]))
            for data in (version["LaunchTemplateData"] for version in versions)
            if "NetworkInterfaces" in data
        )
        assert wired == sorted(
            (group.one_type, len(interface_layout(group.hardware, "fewest_ips")) - 1)
            for group in deployed.launched_groups
            if group.efa
        )

    def test_the_efa_group_allows_itself_in_and_out(self, deployed):
        groups = client(deployed, "ec2").describe_security_groups()["SecurityGroups"]
        (efa,) = [group for group in groups if "EFA" in group["Description"]]
        for way in ("IpPermissions", "IpPermissionsEgress"):
            itself = [
                rule
                for rule in efa[way]
                if rule["IpProtocol"] == "-1"
                and efa["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]
            ]
            assert itself, way

    def test_the_file_system_has_the_settings_of_the_file(self, deployed):
        settings, fsx = deployed.storage.lustre, client(deployed, "fsx")
        systems = fsx.describe_file_systems()["FileSystems"]
        found = [each for each in systems if each["FileSystemType"] == "LUSTRE"]
        assert len(found) == bool(settings) + sum(each.type == "lustre" for each in deployed.storage.more)
        if settings is None:
            return
        (system,) = (each for each in found if each.get("StorageCapacity") == settings.capacity_gib)
        lustre = system["LustreConfiguration"]
        assert bool(lustre.get("EfaEnabled")) == settings.efa
        assert lustre.get("PerUnitStorageThroughput") == settings.throughput_mbps_per_tib
        assert lustre.get("RootSquashConfiguration", {}).get("RootSquash") == settings.root_squash
        links = fsx.describe_data_repository_associations()["Associations"]
        assert {link["FileSystemPath"] for link in links} == {link.path for link in settings.links}

    def test_the_node_subnet_has_enough_addresses(self, deployed):
        subnets = client(deployed, "ec2").describe_subnets(
            Filters=[{"Name": "availability-zone", "Values": [deployed.availability_zone]}]
        )["Subnets"]
        largest = max(subnet["AvailableIpAddressCount"] for subnet in subnets if not subnet["DefaultForAz"])
        assert largest >= deployed.node_addresses
