"""Requirements become an image layer or a virtualenv, once, and say so while they are made."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from apps.engine.builder import ImageBuilder
from apps.engine.builder.image import LABEL_BUILD
from apps.engine.builder.locks import build_lock, digest_of
from apps.engine.builder.sources import ca_bundle, pip_config, uv_environment
from apps.engine.builder.venv import _said_by, seal
from apps.engine.docker_api import connect
from apps.engine.errors import BuildFailed, ImageMissing
from apps.engine.settings import RUN_UID
from apps.engine.types import EnvironmentSpec
from tests.engine.executors.conftest import Driver

WHEEL_FILES = {
    "demo_pkg.py": "ANSWER = 42\n",
    "demo_pkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n",
    "demo_pkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "demo_pkg-1.0.dist-info/RECORD": "",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A package index of our own on loopback, so that nothing is fetched from outside."""
    root = tmp_path_factory.mktemp("index")
    folder = root / "simple" / "demo-pkg"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "demo_pkg-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in WHEEL_FILES.items():
            wheel.writestr(name, text)
    (folder / "index.html").write_text('<a href="demo_pkg-1.0-py3-none-any.whl">demo_pkg-1.0-py3-none-any.whl</a>')
    handler = functools.partial(Quiet, directory=str(root))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple/"
    server.shutdown()


def test_a_version_without_requirements_needs_no_build(process: Driver) -> None:
    said: list[str] = []
    python = process.executor.environment(EnvironmentSpec("# nothing\n\n"), said.append)
    assert python == process.environment
    assert said == []


def test_a_virtualenv_is_built_once_for_two_starts_at_once(process: Driver, index: str) -> None:
    settings = replace(process.settings, pip_env={"PIP_INDEX_URL": index})
    spec = EnvironmentSpec(f"demo-pkg==1.0\n# {index}\n")
    said: list[str] = []
    found: list[str] = []

    def build() -> None:
        executor = type(process.executor)(settings)  # type: ignore[call-arg]
        found.append(executor.environment(spec, said.append))

    workers = [threading.Thread(target=build) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1
    assert sum("happens once" in line for line in said) == 1
    assert any("demo-pkg" in line for line in said)
    handle = process.script("import demo_pkg, sys; print(demo_pkg.ANSWER, sys.prefix)", environment=found[0])
    process.wait(handle)
    assert process.out(handle).split() == ["42", str(Path(found[0]).parent.parent)]


def test_a_run_cannot_change_the_virtualenv_of_the_next(process: Driver, index: str) -> None:
    settings = replace(process.settings, pip_env={"PIP_INDEX_URL": index})
    python = type(process.executor)(settings).environment(EnvironmentSpec("demo-pkg==1.0"), print)  # type: ignore[call-arg]
    folder = Path(python).parent.parent
    paths = [path for path in folder.rglob("*") if not path.is_symlink() and path.name != ".complete"]
    assert len(paths) > 10
    assert [path for path in paths if path.stat().st_mode & (0o022 if path.is_dir() else 0o222)] == []
    assert {path.stat().st_uid for path in paths} == {os.geteuid()}


def test_sealing_a_virtualenv_never_touches_what_a_link_in_it_leads_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    secret = outside / "secret"
    secret.touch(mode=0o600)
    folder = tmp_path / "venv"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "tool").touch(mode=0o4777)
    (folder / "link").symlink_to(secret)
    (folder / "lib" / "folder").symlink_to(outside)
    (folder / ".complete").symlink_to(outside / "made")
    os.mkfifo(folder / "pipe")
    seal(folder, os.geteuid())
    assert (secret.stat().st_mode & 0o777, outside.stat().st_mode & 0o777) == (0o600, 0o700)
    assert (folder / "lib" / "tool").stat().st_mode & 0o7777 == 0o555
    assert not os.path.lexists(folder / ".complete")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user: sudo deploy/test")
def test_sealing_a_virtualenv_leaves_other_peoples_files_alone(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "venv"
    secret.touch(mode=0o600)
    folder.mkdir()
    os.link(secret, folder / "name")
    seal(folder, RUN_UID)
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_file_swapped_for_a_link_while_a_virtualenv_is_sealed_leads_nowhere(tmp_path: Path) -> None:
    secret, over = tmp_path / "secret", threading.Event()
    secret.touch(mode=0o600)

    def swap(folder: Path) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                (folder / "link").symlink_to(secret)
                (folder / "link").rename(folder / "x")
                (folder / "file").touch()
                (folder / "file").rename(folder / "x")

    for turn in range(20):
        folder = tmp_path / f"venv{turn}"
        folder.mkdir()
        over.clear()
        swapper = threading.Thread(target=swap, args=(folder,))
        swapper.start()
        try:
            seal(folder, os.geteuid())
        finally:
            over.set()
            swapper.join()
        assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("leaves", ["sleep 20 &", "setsid sleep 20 &"])
def test_a_build_is_not_held_up_by_what_it_leaves_behind(leaves: str) -> None:
    began = time.monotonic()
    with build(f"echo one; {leaves} printf two") as process:
        assert list(_said_by(process, 15)) == ["one", "two"]
    assert time.monotonic() - began < 10


def test_a_build_that_hangs_is_ended_with_words() -> None:
    with build("echo one; sleep 20") as process, pytest.raises(BuildFailed, match="not installed within"):
        list(_said_by(process, 0.2))


def build(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)


def test_requirements_that_cannot_be_installed_fail_with_the_tools_word(process: Driver, index: str) -> None:
    settings = replace(process.settings, pip_env={"PIP_INDEX_URL": index})
    executor = type(process.executor)(settings)  # type: ignore[call-arg]
    said: list[str] = []
    with pytest.raises(BuildFailed, match="could not be installed"):
        executor.environment(EnvironmentSpec("no-such-package-at-all==9"), said.append)
    assert any("no-such-package-at-all" in line for line in said)
    with pytest.raises(BuildFailed):  # a failed build is not taken for a finished one
        executor.environment(EnvironmentSpec("no-such-package-at-all==9"), said.append)


def test_a_build_runs_without_the_panels_variables_and_rights(
    process: Driver, engine_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://panel:pa55word@db.test/panel")
    backend = """
import os
def build_wheel(directory, config_settings=None, metadata_directory=None):
    raise SystemExit(f"uid {os.getuid()} variables {sorted(os.environ)}")
"""
    package = engine_home / "evil"
    package.mkdir(exist_ok=True)
    (package / "backend.py").write_text(backend)
    system = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    project = f"{system}[project]\nname = 'evil'\nversion = '1'\n"
    (package / "pyproject.toml").write_text(project)
    for path in (package, *package.iterdir()):
        path.chmod(0o755)
    said: list[str] = []
    with pytest.raises(BuildFailed):
        process.executor.environment(EnvironmentSpec(f"evil @ file://{package}"), said.append)
    text = "\n".join(said)
    assert "variables" in text, text
    assert "DATABASE_URL" not in text
    if os.geteuid() == 0:
        assert f"uid {process.settings.run_uid}" in text


@pytest.mark.docker
def test_an_image_layer_is_built_once_and_holds_no_index_address(docker: Driver, index: str) -> None:
    secret = index.replace("http://", "http://reader:pa55word@")
    settings = replace(docker.settings, pip_env={"PIP_INDEX_URL": secret}, build_network="host")
    spec = EnvironmentSpec(f"demo-pkg==1.0\n# {docker.settings.install}\n")
    said: list[str] = []
    tag = ImageBuilder(settings).environment(spec, said.append)
    api = connect("")
    try:
        assert "pa55word" not in "\n".join(said)
        assert any("demo-pkg" in line for line in said)
        assert "pa55word" not in str(api.history(tag))
        digest = tag.partition(":")[2]
        assert api.images(filters={"dangling": True, "label": [f"{LABEL_BUILD}={digest}"]}) == []
        said.clear()
        assert ImageBuilder(settings).environment(spec, said.append) == tag
        assert said == []
        handle = docker.script("import demo_pkg; print(demo_pkg.ANSWER)", environment=tag)
        docker.wait(handle)
        assert docker.out(handle) == "42\n"
        docker.executor.remove(handle)
    finally:
        api.remove_image(tag, force=True)
        api.close()


@pytest.mark.docker
def test_an_image_with_requirements_that_fail_says_the_tools_word(docker: Driver, index: str) -> None:
    settings = replace(docker.settings, pip_env={"PIP_INDEX_URL": index}, build_network="host")
    with pytest.raises(BuildFailed, match="no-such-package-at-all"):
        ImageBuilder(settings).environment(EnvironmentSpec("no-such-package-at-all==9"), print)


@pytest.mark.docker
def test_building_a_hostile_package_leaves_nothing_on_this_machine(docker: Driver, tmp_path: Path) -> None:
    case = Path(__file__).parent.parent.parent / "cases" / "spiders" / "evil_package" / "setup.py"
    marker = Path("/tmp/CLAWPANEL_BUILD_RAN")
    assert not marker.exists()
    packed = docker.settings.home / "evil.zip"
    assert case.exists()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(case, "evil/setup.py")
    handler = functools.partial(Quiet, directory=str(docker.settings.home))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    spec = EnvironmentSpec(f"cp-evil-case @ http://127.0.0.1:{server.server_port}/evil.zip")
    try:
        tag = ImageBuilder(replace(docker.settings, build_network="host")).environment(spec, print)
    except BuildFailed:
        tag = ""  # without an index there is no setuptools to build it with: refused is as good
    finally:
        server.shutdown()
    assert not marker.exists()
    if tag:
        connect("").remove_image(tag, force=True)


@pytest.mark.docker
def test_a_base_that_cannot_be_had_is_missing_with_what_to_do(docker: Driver) -> None:
    settings = replace(docker.settings, runner_base="localhost:1/no-such-base:1")
    with pytest.raises(ImageMissing, match="CLAWPANEL_RUNNER_BASE"):
        ImageBuilder(settings).environment(EnvironmentSpec(), print)


def test_settings_of_pip_are_passed_in_the_tools_own_words(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("pem")
    env = {
        "PIP_INDEX_URL": "https://index.test/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.test https://b.test",
        "PIP_FIND_LINKS": "/opt/wheels https://c.test",
        "PIP_CERT": str(bundle),
        "https_proxy": "http://proxy.test",
        "DATABASE_URL": "never passed",
    }
    assert ca_bundle(env) == bundle
    assert ca_bundle({"PIP_CERT": str(tmp_path / "gone")}) is None
    text = pip_config(env, certificate="/claw/build/ca.pem")
    assert "index-url = https://index.test/simple" in text
    assert "extra-index-url = https://a.test\n    https://b.test" in text
    assert "/opt/wheels" not in text
    assert "cert = /claw/build/ca.pem" in text
    uv = uv_environment(env)
    assert uv["UV_DEFAULT_INDEX"] == "https://index.test/simple"
    assert uv["SSL_CERT_FILE"] == str(bundle)
    assert uv["https_proxy"] == "http://proxy.test"
    assert "DATABASE_URL" not in uv


def test_a_second_builder_is_told_that_it_waits(tmp_path: Path) -> None:
    said: list[str] = []
    waiting = threading.Event()
    order: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    def second() -> None:
        with build_lock(tmp_path, "abc", say):
            order.append("second")

    with build_lock(tmp_path, "abc", said.append):
        worker = threading.Thread(target=second)
        worker.start()
        assert waiting.wait(5)
        order.append("first")
    worker.join()
    assert order == ["first", "second"]
    assert said == ["Another run is building this environment; waiting for it."]


def test_a_digest_tells_its_parts_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("a") == digest_of(b"a")
