"""Live hints about runs through Valkey. PostgreSQL stays the truth: losing every hint only makes pages slower."""

from apps.runs.live.publish import notice, notices, publish_lines, publish_many, publish_partial, publish_state

__all__ = ["notice", "notices", "publish_lines", "publish_many", "publish_partial", "publish_state"]
