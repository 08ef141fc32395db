"""The embedded servers and their folders."""

from __future__ import annotations

from pathlib import Path

from clawpanel.up.servers import EmbeddedValkey


def test_what_the_servers_keep_and_log_is_for_our_own_account(tmp_path: Path) -> None:
    valkey = EmbeddedValkey(tmp_path, durable=False)
    valkey.start()
    try:
        for folder in (valkey.log.parent, valkey.data, valkey.socket.parent):
            assert folder.stat().st_mode & 0o077 == 0, folder
    finally:
        valkey.stop()
