"""MIME documents as Python's own parser reads them."""

from email import message_from_string

from ultracluster.nodes.mime import Part, boot_hook, multipart, shell_script


def test_parts_keep_their_order_types_and_text():
    parts = [Part("application/node.eks.aws", "{}"), boot_hook("#!/bin/sh\n"), shell_script("#!/bin/bash\n")]
    document = message_from_string(multipart(parts))
    assert not document.defects
    assert document["MIME-Version"] == "1.0"
    assert document.get_content_type() == "multipart/mixed"
    found = [(part.get_content_type(), part.get_content_charset()) for part in document.get_payload()]
    assert found == [
        ("application/node.eks.aws", None),
        ("text/cloud-boothook", "us-ascii"),
        ("text/x-shellscript", "us-ascii"),
    ]
    assert [part.get_payload().strip() for part in document.get_payload()] == ["{}", "#!/bin/sh", "#!/bin/bash"]
