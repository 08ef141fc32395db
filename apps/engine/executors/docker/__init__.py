"""Runs attempts as containers of a Docker Engine."""

from apps.engine.executors.docker.executor import DockerExecutor

__all__ = ["DockerExecutor"]
