"""Files that an environment file names, by a path relative to its own folder."""

from pathlib import Path as FilePath
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class FileText(str):
    """Text that was read from a file in `folder`; equal to the text."""

    __slots__ = ("folder",)
    folder: FilePath

    def __new__(cls, text: str, folder: FilePath) -> Self:
        """Text of a file in `folder`."""
        found = super().__new__(cls, text)
        found.folder = folder
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.folder)


class NamedFile(str):
    """The path of a file as it is written, relative to `folder`; in Python, where `folder` is None, to the current one.

    Equal to the path as it is written. It serialises as the whole path, so that other code can read it back.
    """

    __slots__ = ("folder",)
    folder: FilePath | None

    def __new__(cls, written: str, folder: FilePath | None = None) -> Self:
        """The path `written`, relative to `folder`."""
        found = super().__new__(cls, written)
        found.folder = folder
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.folder)

    @property
    def path(self) -> FilePath:
        """Where the file is."""
        return FilePath(self) if self.folder is None else self.folder / self

    @property
    def is_outside(self) -> bool:
        """Whether an environment file names a file outside its folder: by .., an absolute path, or a symbolic link."""
        return self.folder is not None and not self.path.resolve().is_relative_to(self.folder.resolve())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.str_schema(strict=True, min_length=1)
        whole = core_schema.plain_serializer_function_ser_schema(lambda named: str(named.path), when_used="json")
        return core_schema.no_info_wrap_validator_function(cls._keep_folder, written, serialization=whole)

    @classmethod
    def _keep_folder(cls, value: Any, handler: Any) -> Self:
        return cls(handler(value), getattr(value, "folder", None))
