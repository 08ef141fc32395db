"""Builds the icon sprite from an unpacked @tabler/icons package: `python3 deploy/icon_sprite.py <package folder>`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USES = (
    re.compile(r"""\{%\s*icon\s+["']([a-z0-9-]+)["']"""),
    re.compile(r"""icon=["']([a-z0-9-]+)["']"""),
    re.compile(r"""["']icon:([a-z0-9-]+)["']"""),
)


def used_icons() -> list[str]:
    """Names in `{% icon "name" %}` and `icon="name"` of templates, and `"icon:name"` in Python and JavaScript."""
    names: set[str] = set()
    for folder, pattern in (("templates", "*.html"), ("apps", "*.py"), ("static", "*.js")):
        for path in (ROOT / folder).rglob(pattern):
            if "vendor" not in path.parts:
                text = path.read_text(encoding="utf-8")
                names.update(name for use in USES for name in use.findall(text))
    return sorted(names)


def symbol(package: Path, name: str) -> str:
    svg = (package / "icons" / "outline" / f"{name}.svg").read_text(encoding="utf-8")
    inner = re.sub(r"\s*\n\s*", "", svg[svg.index(">") + 1 : svg.rindex("</svg>")])
    inner = inner.replace('<path stroke="none" d="M0 0h24v24H0z" fill="none" />', "")
    return f'<symbol id="{name}" viewBox="0 0 24 24">{inner}</symbol>'


def main() -> None:
    package = Path(sys.argv[1])
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    lines = [symbol(package, name) for name in used_icons()]
    text = "\n".join(['<svg xmlns="http://www.w3.org/2000/svg">', *lines, "</svg>", ""])
    (ROOT / "static" / "vendor" / f"tabler-icons-{version}.min.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
