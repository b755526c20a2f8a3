"""`python -m localaws up|status|down`: start the embedded AWS as a server, list what is in it, stop it."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from localaws import accounts, server


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    options = _parser().parse_args(arguments)
    server.stay_on_this_machine()
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (server.ServerError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localaws", description="AWS on this machine for CDK apps.")
    commands = parser.add_subparsers(required=True, metavar="up|status|down")
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument(
        "--folder", type=Path, default=server.FOLDER, help="folder of this server's files (default: %(default)s)"
    )
    up = commands.add_parser(
        "up", parents=[folder], help="start it unless it runs, and write FOLDER/env for AWS clients"
    )
    up.add_argument("--region", default="us-east-1", help="Region of the clients (default: %(default)s)")
    up.add_argument("--account", default=accounts.DEFAULT, help="account of the clients (default: %(default)s)")
    up.set_defaults(run=_up)
    status = commands.add_parser("status", parents=[folder], help="list stacks and resources; 1 when it does not run")
    status.add_argument("--json", action="store_true", help="print the list as JSON")
    status.set_defaults(run=_status)
    down = commands.add_parser("down", parents=[folder], help="stop it, unless stacks are deployed")
    down.add_argument("--force", action="store_true", help="stop it also while stacks are deployed")
    down.set_defaults(run=_down)
    return parser


def _up(options: argparse.Namespace) -> int:
    running = server.serve(options.region, options.account, options.folder)
    print(f"The embedded AWS runs at {running.url}. To use it in this shell, run: . {options.folder}/env")
    return 0


def _status(options: argparse.Namespace) -> int:
    running = server.status(options.folder)
    if running is None:
        print("The embedded AWS does not run. Start it: python -m localaws up", file=sys.stderr)
        return 1
    found = list(_resources(running))
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"The embedded AWS runs at {running.url}")
    for row in found:
        print("  ".join(row.values()))
    return 0


def _down(options: argparse.Namespace) -> int:
    running = server.status(options.folder)
    deployed = running.stacks() if running else []
    if deployed and not options.force:
        print(f"The embedded AWS keeps running, because these stacks are deployed: {', '.join(deployed)}")
        return 1
    print("The embedded AWS has stopped" if server.stop(options.folder) else "The embedded AWS does not run")
    return 0


def _resources(running: server.Server) -> Iterator[dict[str, str]]:
    """The resources of all stacks, in all accounts and Regions."""
    import boto3

    for account, region, stacks in running.deployments():
        cloudformation: Any = boto3.client("cloudformation", region_name=region, **running.connection(account))
        for stack in stacks:
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            for each in (found for page in pages for found in page["StackResourceSummaries"]):
                yield {
                    "account": account,
                    "region": region,
                    "stack": stack,
                    "logical_id": each["LogicalResourceId"],
                    "type": each["ResourceType"],
                    "physical_id": each.get("PhysicalResourceId", ""),
                    "status": each["ResourceStatus"],
                }


if __name__ == "__main__":
    sys.exit(main())
