"""The sprite holds the icons that are used, and no others."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from apps.panel.templatetags.panel import SPRITE

ROOT = Path(__file__).parent.parent


def test_the_sprite_holds_what_is_used() -> None:
    used = runpy.run_path(str(ROOT / "deploy" / "icon_sprite.py"))["used_icons"]()
    there = re.findall(r'<symbol id="([^"]+)"', (ROOT / "static" / SPRITE).read_text(encoding="utf-8"))
    assert used == there
