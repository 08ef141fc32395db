"""What is found out before anything is started."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from clawpanel.refusal import CannotStart
from clawpanel.up import checks, places


def test_a_port_in_use_is_said_with_the_variable_to_change() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"Port {port} on 127\.0\.0\.1 cannot be used .* Set CLAWPANEL_PORT"):
            checks.port_is_free("127.0.0.1", port, "CLAWPANEL_PORT")


def test_a_second_start_on_one_home_is_refused(tmp_path: Path) -> None:
    words = rf"already running on .* \(process {os.getpid()}\)"
    with checks.only_one(tmp_path), pytest.raises(CannotStart, match=words):
        checks.only_one(tmp_path)
    checks.only_one(tmp_path).close()


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(CannotStart, match="DATABASE_URL does not answer") as refusal:
        checks.database_answers("postgres://me:hidden-word@127.0.0.1:1/x")
    assert "hidden-word" not in str(refusal.value)


def test_a_long_home_gets_a_short_socket_folder(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    folder = places.socket_dir(home)
    assert len(str(folder / ".s.PGSQL.5432.lock")) <= places.SOCKET_PATH_MAX
    assert folder == places.socket_dir(home)


def test_state_that_another_account_cannot_reach_moves_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    assert places.state_dir(hidden).is_relative_to(places.STATE_OF_ROOT)
    (hidden / "postgres").symlink_to(tmp_path / "elsewhere" / "postgres")
    hidden.chmod(0o755)
    assert places.state_dir(hidden) == tmp_path / "elsewhere"
