"""Which executor is taken, and the sentence that says why."""

from pathlib import Path

import pytest

from apps.engine import registry
from apps.engine.errors import EngineError, ImageMissing
from apps.engine.executors.fake import FakeExecutor
from apps.engine.executors.process import ProcessExecutor
from apps.engine.settings import EngineSettings
from apps.engine.types import EngineHealth


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    return EngineSettings(install="reg", home=tmp_path)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    fake = FakeExecutor()
    fake.kind = "docker"
    monkeypatch.setitem(registry.KINDS, "docker", lambda _: fake)
    return fake


def test_docker_is_taken_where_it_answers(settings, engine):
    executor, why = registry.choose("auto", settings)
    assert executor is engine
    assert "isolated in containers" in why


def test_without_an_engine_runs_are_processes_and_it_is_said(settings, engine):
    engine.state = EngineHealth(ok=False, message="The Docker Engine does not answer (no such file).")
    executor, why = registry.choose("auto", settings)
    assert isinstance(executor, ProcessExecutor)
    assert "not isolated" in why
    assert "does not answer" in why


def test_without_an_image_runs_are_processes_and_it_is_said_what_to_do(settings, engine):
    engine.fail("environment", ImageMissing("Name one in CLAWPANEL_RUNNER_BASE."))
    executor, why = registry.choose("auto", settings)
    assert executor.kind == "process"
    assert "CLAWPANEL_RUNNER_BASE" in why


def test_a_kind_asked_for_is_never_replaced_by_a_weaker_one(settings, engine):
    engine.state = EngineHealth(ok=False, message="down")
    executor, why = registry.choose("docker", settings)
    assert executor is engine
    assert "CLAWPANEL_EXECUTOR" in why


def test_an_unknown_kind_is_refused_with_the_known_ones(settings):
    with pytest.raises(EngineError, match="auto, docker, process"):
        registry.create_executor("podman", settings)
