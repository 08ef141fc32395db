"""What of an order is known only on the node that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.core.errors import PanelError
from apps.core.templating import finished
from apps.runs.agent.followed import SpecBroken


def with_node(spec: Mapping[str, Any], node: str) -> tuple[list[str], dict[str, str]]:
    """Command and variables of the order, the node's name put in where a template asks for it."""
    command = [str(part) for part in spec["command"]]
    env = {str(name): str(value) for name, value in spec["env"].items()}
    later = spec.get("later")
    if not isinstance(later, dict):
        return command, env
    try:
        for number, parts in (later.get("command") or {}).items():
            command[int(number)] = finished(parts, node)
        for name, parts in (later.get("env") or {}).items():
            env[name] = finished(parts, node)
    except PanelError as error:
        raise SpecBroken(error.message) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SpecBroken("The order of this run cannot be read.") from error
    return command, env
