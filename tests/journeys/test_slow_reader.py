"""A download to a client that hardly reads costs no memory."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.panel import Panel, free_port

APPLICATION = """
from clawpanel import pacing

pacing.install()


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        for _ in range(3000):
            await send({"type": "websocket.send", "bytes": b"x" * 65536})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(3000):
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
"""


def peak_megabytes(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


def connect(port: int, seconds: float = 20) -> socket.socket:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


UPGRADE = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
UPGRADE += base64.b64encode(bytes(16)) + b"\r\n"


@pytest.mark.parametrize(("headers", "status"), [(b"", b"HTTP/1.1 200"), (UPGRADE, b"HTTP/1.1 101")])
def test_a_reader_that_stands_still_holds_up_the_download_not_the_server(
    tmp_path: Path, headers: bytes, status: bytes
) -> None:
    (tmp_path / "endless.py").write_text(APPLICATION)
    port = free_port()
    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "endless:application"]
    root = str(Path(__file__).parents[2])
    server = subprocess.Popen(command, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{root}"})
    try:
        with connect(port) as reader:
            reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
            assert reader.recv(1000).startswith(status)
            time.sleep(1.5)
            assert peak_megabytes(server.pid) < 120
            received = 0
            while received < 3000 * 65536:
                received += len(reader.recv(1 << 20))
        assert peak_megabytes(server.pid) < 120
    finally:
        server.terminate()
        server.wait(10)


def test_a_large_file_of_items_costs_the_server_no_memory(running_panel: Panel) -> None:
    run = running_panel.run(running_panel.job("large file", "slow", count=1))
    running_panel.wait(run)
    with psycopg.connect(running_panel.environment["DATABASE_URL"]) as connection:
        connection.execute(
            "INSERT INTO runs_item (month, run_id, seq, attempt, dataset_id, created_at, data)"
            " SELECT month, id, 1000 + n, 1, 0, now(), jsonb_build_object('n', n, 'text', repeat('x', 1000))"
            " FROM runs_run, generate_series(1, 150000) AS n WHERE id = %s",
            [run],
        )
    web = running_panel.process_with("daphne")
    before = peak_megabytes(web.pid)
    for file in ("items.jsonl", "items.csv"):
        address = f"{running_panel.url}/api/v1/runs/{run}/{file}"
        with running_panel.session.get(address, stream=True, timeout=60) as answer:
            received = sum(map(len, answer.iter_content(1 << 16)))
        assert received > 150_000_000
    assert peak_megabytes(web.pid) - before < 60


def test_a_body_too_large_for_anything_is_cut_off_before_it_is_stored(running_panel: Panel) -> None:
    port = int(running_panel.url.rpartition(":")[2])
    with connect(port) as sender:
        head = "POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000000\r\n\r\n"
        sender.sendall(head.encode())
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 90_000_000:
                sender.sendall(bytes(65536))
                sent += 65536
    # What lies in the sockets' buffers has been sent too.
    assert sent < 60_000_000
    assert running_panel.session.get(f"{running_panel.url}/readyz", timeout=10).status_code == 200
