"""What an engine may raise. Each carries one plain sentence."""


class EngineError(Exception):
    """The engine refused or failed; the sentence is fit for a person."""


class EngineUnavailable(EngineError):
    """The engine does not answer now; try again later, nothing is known about the attempt."""


class ImageMissing(EngineError):
    """The base or runner image is not there and cannot be built."""


class BuildFailed(EngineError):
    """The requirements could not be installed."""


class CreateFailed(EngineError):
    """The attempt could not be created or started: bad command, name taken by a stranger, no space."""
