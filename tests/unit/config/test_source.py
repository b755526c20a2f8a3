"""The YAML parser: core schema of YAML 1.2, positions, limits."""

import time

import pytest

from ultracluster.config.named_files import FileText
from ultracluster.config.source import MAXIMUM_BYTES, UnreadableSource, parse, read_text


def refusal(text):
    with pytest.raises(UnreadableSource) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("NO", "NO"),
        ("~", None),
        ("", None),
        ("null", None),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("012", 12),
        ("0o14", "0o14"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("12:00:00", "12:00:00"),
        ("2026-11-20", "2026-11-20"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("p5.48xlarge", "p5.48xlarge"),
        ("10.0.0.0/16", "10.0.0.0/16"),
        ("日本", "日本"),
        ("[1, [2]]", [1, [2]]),
        ("{}", {}),
    ],
)
def test_values(text, value):
    read = parse(f"key: {text}\n").data["key"]
    assert read == value
    assert type(read) in (type(value), FileText)


def test_positions_of_keys_and_items():
    source = parse("a:\n  b: [x, {c: y}]\n")
    assert source.positions == {
        (): (1, 1),
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "b", 1, "c"): (2, 11),
    }
    assert source.paths[id(source.data["a"]["b"][1])] == ("a", "b", 1)


def test_values_that_are_not_text_keep_their_written_form():
    assert parse("a: 012\nb: 25.10\nc: x\nd: ~\n").written == {("a",): "012", ("b",): "25.10", ("d",): "~"}


def test_an_alias_has_a_path_of_its_own():
    source = parse("a: &x {n: 1}\nb: *x\n")
    assert source.data == {"a": {"n": 1}, "b": {"n": 1}}
    assert {source.paths[id(source.data[key])] for key in "ab"} == {("a",), ("b",)}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_all_line_endings_work(newline):
    source = parse(newline.join(["a: 1", "b: 2", ""]))
    assert source.data == {"a": 1, "b": 2}
    assert source.positions[("b",)] == (2, 1)


def test_a_byte_order_mark_is_not_part_of_a_key(tmp_path):
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert parse(read_text(file)).data == {"a": 1, "b": 2}


@pytest.mark.parametrize("key", ["1", "~", "true", "1.5"])
def test_keys_are_text(key):
    assert list(parse(f"{key}: x").data) == [key]


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 100_000, "- " * 50_000, "{a: " * 50_000, "\n".join(" " * n + "a:" for n in range(2000))],
    ids=["brackets", "dashes", "braces", "indents"],
)
def test_deep_nesting_is_refused_quickly(text):
    started = time.process_time()
    refused = refusal(text)
    assert (refused.code, refused.message) == ("yaml-syntax", "brackets or indents are nested too deeply")
    assert time.process_time() - started < 5


def test_nested_aliases_have_a_limit():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    started = time.process_time()
    assert refusal("\n".join(lines)).code == "yaml-alias"
    assert time.process_time() - started < 5


def test_an_alias_that_contains_itself_is_refused():
    assert refusal("a: &x [*x]").code == "yaml-alias"


@pytest.mark.parametrize("text", ["", "   \n", "# words\n", "---\n", "~\n", "null", "---\n...\n"])
def test_empty_files(text):
    assert refusal(text).code == "empty-file"


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a: [1, 2\nb: 3\n", "the list that starts here is not closed", (1, 4)),
        ("a: {b: 1\n", "the mapping that starts here is not closed", (1, 4)),
        ("a: b: c\n", "the line has a second colon", (1, 5)),
        ("a: 1\n b: 2\n", "the line does not match the structure of the lines above", (2, 3)),
        ("a:\n  b: 1\n c: 2\n", "the line does not match the structure of the lines above", (3, 2)),
        ("a:\n\tb: 1\n", "a tab indents this line; YAML requires spaces", (2, 1)),
        ("a: {b:\t'1'}\n", "a tab where YAML requires spaces", (1, 7)),
        ('a: "x\nb: 1\n', "the quote that opens here is not closed", (1, 4)),
        ("a: 1\nfoo\nb: 2\n", "this line is not a key with a colon", (2, 1)),
        ("a: @x\n", "a value cannot start with @", (1, 4)),
        ("a: *x\n", "*x refers to an anchor that does not exist", (1, 4)),
        ("a: &x 1\nb: &x 2\n", "the anchor &x is defined twice", (2, 4)),
        ("a: *\n", "* is an alias without a name", (1, 5)),
        ('a: "\\q"\n', "\\q is not an escape sequence of double quotes", (1, 6)),
        ("a: 1\n---\nb: 2\n", "a second YAML document starts here", (2, 1)),
        ("a: 1\n...\nb\n", "this text belongs to no key above", (3, 1)),
        ("a: !Ref b\n", "the tag !Ref is not supported", (1, 4)),
        ("a: !!set {b}\n", "the tag !!set is not supported", (1, 4)),
        ("a: !!int b\n", "b is not a number", (1, 4)),
        ("a: " + "9" * 5000, "99999999999999999999... is not a number", (1, 4)),
        ("? [a]\n: b\n", "a key is a list or a mapping", (1, 3)),
        ("<<: {a: 1}\n", "the merge key << is not part of YAML 1.2", (1, 1)),
        ("a: 1\nb: \x00\n", "the character U+0000 is not allowed in YAML", (2, 4)),
    ],
)
def test_syntax_errors_have_plain_words_and_a_position(text, message, position):
    refused = refusal(text)
    assert (refused.code, refused.message, refused.position) == ("yaml-syntax", message, position)
    assert refused.hint


def test_a_duplicate_key_names_both_lines():
    refused = refusal("a: 1\nb: 2\na: 3\n")
    assert (refused.code, refused.message, refused.position) == (
        "yaml-duplicate-key",
        "a is a duplicate key, first set on line 1",
        (3, 1),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xff", "byte 4 is not UTF-8 text"),
        ("a: 1".encode("utf-16"), "byte 1 is not UTF-8 text"),
        (b"#" * (MAXIMUM_BYTES + 1), "the file is larger than 256 KiB"),
    ],
)
def test_files_without_text(tmp_path, content, message):
    file = tmp_path / "environment.yaml"
    file.write_bytes(content)
    with pytest.raises(UnreadableSource) as caught:
        read_text(file)
    assert (caught.value.code, caught.value.message) == ("file-unreadable", message)


@pytest.mark.parametrize("name", ["nowhere.yaml", ".", "a\0b", "x" * 5000, "/dev/zero"])
def test_paths_that_are_not_files(tmp_path, name):
    with pytest.raises(UnreadableSource) as caught:
        read_text(tmp_path / name)
    assert caught.value.code == "file-unreadable"
