"""Makes what a version runs in: an image layer or a virtualenv, once per digest of its inputs."""

from apps.engine.builder.image import ImageBuilder
from apps.engine.builder.venv import VenvBuilder

__all__ = ["ImageBuilder", "VenvBuilder"]
