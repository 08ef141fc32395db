"""What only a container promises: the fence around it, and calm with an engine in any mood."""

from __future__ import annotations

import io
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from apps.engine.docker_api import connect
from apps.engine.errors import CreateFailed, ImageMissing
from apps.engine.executors.docker import DockerExecutor
from apps.engine.executors.docker.usage import read_stats
from apps.engine.types import MIB, Phase
from tests.engine.executors.conftest import SMALL, Driver

pytestmark = pytest.mark.docker


def test_nothing_a_hostile_spider_tries_first_works(docker: Driver) -> None:
    handle = docker.case("probe_escape.py")
    assert docker.wait(handle).exit_code == 0
    lines = docker.out(handle).splitlines()
    assert lines[0].startswith("uid ")
    assert len(lines) > 15
    assert [line for line in lines[1:] if not line.startswith("no ")] == []


def test_a_run_reaches_neither_the_host_nor_another_run_nor_private_networks(docker: Driver) -> None:
    gateway = docker.executor.gateway()
    neighbour = docker.script(
        "import socket\ns = socket.create_server(('0.0.0.0', 8000))\nprint('up', flush=True)\nwhile True: s.accept()"
    )
    docker.until_printed(neighbour, "up")
    with closing(socket.create_server(("0.0.0.0", 0))) as server:  # noqa: S104 - what careless services do
        port = server.getsockname()[1]
        targets = [
            f"host {gateway} {port}",
            f"bridge 172.17.0.1 {port}",
            "metadata 169.254.169.254 80",
            f"neighbour {_address(docker, neighbour.ref)} 8000",
            "mail 192.0.2.1 25",
        ]
        handle = docker.case("probe_network.py", {"TARGETS": ";".join(targets)})
        docker.wait(handle, 30)
    lines = docker.out(handle).splitlines()
    assert [line.split()[0] for line in lines] == ["host", "bridge", "metadata", "neighbour", "mail"]
    assert "OPEN" not in docker.out(handle)


def test_the_one_open_address_is_the_demo_site(docker: Driver) -> None:
    gateway = docker.executor.gateway()
    with closing(socket.create_server((gateway, 0))) as server:
        port = server.getsockname()[1]
        opened = DockerExecutor(replace(docker.settings, demo_address=f":{port}"))
        opened.prepare()
        try:
            handle = docker.case("probe_network.py", {"TARGETS": f"demo {gateway} {port};other {gateway} {port + 1}"})
            docker.wait(handle)
        finally:
            docker.executor.prepare()
    assert docker.out(handle).splitlines()[0] == "demo OPEN"
    assert "other OPEN" not in docker.out(handle)


def test_the_rules_do_not_grow_when_they_are_set_again(docker: Driver) -> None:
    docker.executor.prepare()  # closes what a demo site that is gone had open
    before = _rules()
    docker.executor.prepare()
    docker.executor.prepare()
    assert _rules() == before
    assert sum("-j CLAW-RUNS-IN" in rule for rule in before) == 1


def test_the_probe_finds_no_fault_and_leaves_nothing(docker: Driver) -> None:
    assert docker.executor.probe() == ()
    assert not list((docker.settings.home / "runs").glob("probe-*"))
    assert docker.executor.list(docker.settings.install) == []


def test_the_probe_says_when_the_host_can_be_reached(docker: Driver) -> None:
    if not shutil.which("iptables"):
        pytest.skip("iptables is not installed: apt-get install iptables")
    subprocess.run(["iptables", "-w", "5", "-I", "CLAW-RUNS-IN", "1", "-j", "RETURN"], check=True)
    try:
        (fault,) = docker.executor.probe()
    finally:
        docker.executor.prepare()
    assert "can reach services of this host" in fault


def test_a_full_tmp_is_no_space_for_this_run_alone(docker: Driver) -> None:
    for folder in ("/tmp", "/claw/work", "/dev/shm"):
        roomy = replace(SMALL, output_bytes=512 * MIB)
        handle = docker.case("disk_fill.py", {"DIR": folder, "MB": "200"}, limits=roomy)
        assert docker.wait(handle).exit_code == 1
        assert "No space left on device" in docker.out(handle), folder


@contextmanager
def image(docker: Driver, *lines: str) -> Iterator[str]:
    """An image on top of the runner, for as long as it is needed."""
    tag = f"claw-test-image:{docker.settings.install}"
    dockerfile = "\n".join([f"FROM {docker.environment}", *lines]).encode()
    api = connect("", timeout=60)
    try:
        for message in api.build(fileobj=io.BytesIO(dockerfile), tag=tag, rm=True, decode=True):
            assert "error" not in message, message
        yield tag
        docker.executor.remove(docker.handles[-1])
    finally:
        api.remove_image(tag, force=True)
        api.close()


def test_a_volume_of_the_image_is_sized_too(docker: Driver) -> None:
    with image(docker, "VOLUME /data") as tag:
        handle = docker.case("disk_fill.py", {"DIR": "/data", "MB": "200"}, environment=tag)
        assert docker.wait(handle).exit_code == 1
        assert "No space left on device" in docker.out(handle)


def test_an_images_own_user_and_entry_point_are_not_trusted(docker: Driver) -> None:
    with image(docker, "USER 0:0", 'ENTRYPOINT ["sleep", "60"]', "HEALTHCHECK CMD true") as tag:
        handle = docker.script("import os; print(os.getuid(), flush=True)", environment=tag)
        docker.wait(handle)
        assert docker.out(handle).strip() not in ("", "0")


def test_secrets_are_not_in_docker_inspect(docker: Driver) -> None:
    handle = docker.script("import time; time.sleep(30)", secrets={"token": "geheim-4711"})
    api = connect("")
    try:
        assert "geheim-4711" not in str(api.inspect_container(handle.ref))
        host = api.inspect_container(handle.ref)["HostConfig"]
    finally:
        api.close()
    assert host["AutoRemove"] is False
    assert host["Init"] is True
    assert host["ReadonlyRootfs"] is True
    assert host["Memory"] == host["MemorySwap"] == SMALL.memory_bytes
    assert host["RestartPolicy"]["Name"] in ("", "no")


def test_a_foreign_container_of_that_name_is_reported_and_left_alone(docker: Driver) -> None:
    spec = docker.spec(("python3", "-c", "pass"), secrets={"token": "x"})
    api = connect("")
    try:
        foreign = api.create_container_from_config(
            {"Image": docker.environment, "Labels": {"whose": "not ours"}, "Cmd": ["true"]}, name=spec.name
        )
        with pytest.raises(CreateFailed, match="not ours"):
            docker.executor.create(spec)
        assert docker.executor.find(spec.install, spec.run_id, 1, spec.run_dir) is None
        assert api.inspect_container(foreign["Id"])["State"]["Status"] == "created"
        assert not docker.settings.secrets_dir(spec.name).exists()
        api.remove_container(foreign["Id"])
    finally:
        api.close()


def test_an_image_that_is_gone_is_missing(docker: Driver) -> None:
    with pytest.raises(ImageMissing):
        docker.executor.create(docker.spec(("python3", "-c", "pass"), environment="claw-env:gone"))


def test_stats_of_an_engine_elsewhere_say_the_same(docker: Driver) -> None:
    handle = docker.script("import time\nheld = bytearray(40 << 20)\nprint('up', flush=True)\ntime.sleep(30)")
    docker.until_printed(handle, "up")
    near = docker.executor.sample(handle)
    api = connect("")
    try:
        far = read_stats(api, handle.ref)
    finally:
        api.close()
    assert near is not None
    assert far is not None
    assert abs(near.memory_bytes - far.memory_bytes) < 4 * MIB
    assert near.memory_limit_bytes == far.memory_limit_bytes
    assert near.network_rx_bytes > 0


def test_more_cpus_than_there_are_means_all_of_them(docker: Driver) -> None:
    handle = docker.script("print('up', flush=True)", limits=replace(SMALL, cpus=1000.0))
    assert docker.wait(handle).exit_code == 0


def test_a_container_that_cannot_be_started_says_why(docker: Driver) -> None:
    spec = docker.spec(("python3", "-c", "pass"))
    handle = docker.executor.create(spec)
    docker.handles.append(handle)
    (spec.run_dir / "records").unlink()
    with pytest.raises(CreateFailed, match="Docker refused"):
        docker.executor.start(handle)
    assert docker.executor.inspect(handle).phase is Phase.CREATED


def _address(docker: Driver, ref: str) -> str:
    api = connect("")
    try:
        networks = api.inspect_container(ref)["NetworkSettings"]["Networks"]
    finally:
        api.close()
    return str(networks[docker.settings.network]["IPAddress"])


def _rules() -> list[str]:
    if not shutil.which("iptables"):
        pytest.skip("iptables is not installed: apt-get install iptables")
    done = subprocess.run(["iptables", "-w", "5", "-S"], check=True, capture_output=True, text=True)
    return [rule for rule in done.stdout.splitlines() if "CLAW-RUNS" in rule]
