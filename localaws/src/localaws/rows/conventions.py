"""What a row leaves out: calls are named after the resource, and Ref is the member that its deletion needs."""

from dataclasses import replace

from localaws.rows import shapes
from localaws.rows.row import Row


def completed(row: Row) -> Row:
    """The row with calls, `ref`, `ident` and `tag_kind` by convention where it leaves them out.

    A Subnet has CreateSubnet, DescribeSubnets and DeleteSubnet, and no UpdateSubnet. DeleteSubnet needs only SubnetId,
    which is Ref therefore, and which calls have as SubnetId or SubnetIds. EC2 calls the Subnet subnet in
    TagSpecifications.
    """
    kind = row.type.rsplit("::", 1)[-1]

    def call(given: str | None, *names: str) -> str | None:
        return shapes.action(row.service, *names) if given == "" else given

    create, delete = call(row.create, f"Create{kind}"), call(row.delete, f"Delete{kind}")
    needed = getattr(shapes.input_of(row.service, delete), "required_members", [])
    own = {each: "{ref}" for name in needed for each in (name, f"{name}s")} if len(needed) == 1 else {}
    specifications = shapes.members(shapes.input_of(row.service, create)).get("TagSpecifications")
    kinds = specifications.member.members["ResourceType"].enum if specifications else ()
    return replace(
        row,
        create=create,
        read=call(row.read, f"Get{kind}", f"Describe{kind}", f"Describe{kind}s"),
        update=call(row.update, f"Update{kind}"),
        delete=delete,
        ref=row.ref or "".join(f"{{{name}}}" for name in needed[:1]),
        ident={**own, **row.ident},
        tag_kind=row.tag_kind or next((each for each in kinds if shapes.plain(each) == shapes.plain(kind)), ""),
    )
