"""The base class of all errors of this package, and the errors that several folders raise."""


class UltraclusterError(Exception):
    """Base class of all errors that this package defines."""


class MissingExtra(UltraclusterError, ImportError):
    """A feature requires an optional extra that is not installed. The message contains the install command.

    `extra` is the name of the extra, `feature` the feature that requires it.
    """

    def __init__(self, extra: str, feature: str) -> None:
        self.extra, self.feature = extra, feature
        super().__init__(f"{feature} needs the extra {extra!r}. Install it: pip install 'ultracluster[{extra}]'")


class InvalidArgument(UltraclusterError, ValueError):
    """A construct argument is missing, or has a value that cannot be deployed."""
