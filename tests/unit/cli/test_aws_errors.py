"""Commands that ask AWS: what they say without credentials, and what they check before they ask."""

import pytest
from typer.testing import CliRunner

from tests.bad_files import FOLDER
from ultracluster.cli import app


@pytest.fixture(autouse=True)
def signed_out(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize("words", [("connect",), ("leftovers",), ("leftovers", "--delete", "--yes", "test")])
def test_without_credentials_the_way_to_sign_in_is_named(words):
    done = CliRunner().invoke(app, [words[0], str(FOLDER / "minimal.yaml"), *words[1:]])
    assert done.exit_code == 1
    assert done.stderr == "No AWS credentials. Set AWS_PROFILE or sign in with `aws sso login`\n"


def test_another_name_is_refused_before_aws_is_asked():
    done = CliRunner().invoke(app, ["leftovers", str(FOLDER / "minimal.yaml"), "--delete", "--yes", "other"])
    assert (done.exit_code, done.stderr) == (1, "other is not test: nothing was deleted\n")
