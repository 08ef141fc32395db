"""Runs attempts as processes of this machine, for where there is no container engine."""

from apps.engine.executors.process.executor import ProcessExecutor

__all__ = ["ProcessExecutor"]
