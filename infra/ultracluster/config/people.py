"""The file of users that `access.users` names: read in place of its path, with findings that point into it."""

from ultracluster.config.named_files import FileText, NamedFile
from ultracluster.config.problems import Path
from ultracluster.config.source import Source, UnreadableSource, parse, read_text

USERS: Path = ("access", "users")

MAXIMUM_BYTES = 1024 * 1024
"""Of the file: more than the longest list, so that `Users` refuses a list that is too long, with a reason."""

SHORTEN = "list fewer users, or use access.directory"


def with_users(source: Source) -> Source:
    """`source` with the content of the file of users at its place; unchanged without one.

    The path is relative to the file that sets it, which may be one that the environment file extends. Raises
    UnreadableSource for a file that cannot be read.
    """
    access = source.data.get(USERS[0]) if isinstance(source.data, dict) else None
    if not isinstance(access, dict) or access.get(USERS[1]) is None:
        return source
    named, position, inherited = access[USERS[1]], source.positions[USERS], source.is_inherited(USERS)
    setter = source.base_file if inherited else ""
    if not isinstance(named, str):
        message, hint = "the value is not text", "give the path of the file of users"
        raise UnreadableSource("wrong-type", message, hint, position, path=USERS, file=setter)
    file = NamedFile(named, named.folder if isinstance(named, FileText) else None).path
    try:
        users = parse(read_text(file, MAXIMUM_BYTES, SHORTEN), file.parent)
    except UnreadableSource as error:
        if error.code == "file-unreadable":
            message = f"{named}: {error.message}"
            raise UnreadableSource("users-unreadable", message, error.hint, position, path=USERS, file=setter) from None
        hint = "list users, or remove users from access" if error.code == "empty-file" else error.hint
        raise UnreadableSource(error.code, error.message, hint, error.position, file=str(file)) from None
    if not isinstance(users.data, dict):
        message, hint = "the file is not a mapping with the keys groups and users", "write the list below users:"
        raise UnreadableSource("wrong-type", message, hint, (1, 1), file=str(file))
    access[USERS[1]] = users.data
    source.positions |= {(*USERS, *path): at for path, at in users.positions.items() if path}
    source.paths |= {key: (*USERS, *path) for key, path in users.paths.items()}
    source.written |= {(*USERS, *path): text for path, text in users.written.items()}
    source.included[USERS] = str(file)
    return source
