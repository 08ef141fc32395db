"""The fake keeps the executor's contract, so that what is tested on it holds on the real ones."""

from pathlib import Path
from threading import Event, Thread

import pytest

from apps.engine.errors import EngineUnavailable
from apps.engine.executors.fake import FakeAttempt, FakeExecutor
from apps.engine.types import Phase, RunSpec


def spec(tmp_path: Path, run_id: int = 1) -> RunSpec:
    return RunSpec(
        install="fake", run_id=run_id, attempt=1, token=1, request_id="r", spider="s", command=("x",),
        code_dir=tmp_path, run_dir=tmp_path / f"{run_id}-1", environment="fake-environment",
    )  # fmt: skip


def test_a_script_runs_at_the_start_and_once(tmp_path):
    def script(attempt: FakeAttempt) -> None:
        attempt.print("hello")
        attempt.emit({"n": 1})
        attempt.exit(3)

    executor = FakeExecutor(script)
    handle = executor.create(spec(tmp_path))
    assert executor.create(spec(tmp_path)) == handle
    assert executor.inspect(handle).phase is Phase.CREATED
    executor.start(handle)
    executor.start(handle)
    assert executor.inspect(handle).exit_code == 3
    assert (handle.run_dir / "out").read_text() == "hello\n"
    assert (handle.run_dir / "records").read_text() == 'item {"n": 1}\n'


def test_it_is_stopped_paused_and_removed_like_a_real_one(tmp_path):
    executor = FakeExecutor()
    handle = executor.create(spec(tmp_path))
    executor.start(handle)
    executor.pause(handle)
    assert executor.inspect(handle).phase is Phase.PAUSED
    executor.resume(handle)
    executor.attempt(1).ignores_term = True
    executor.terminate(handle)
    assert executor.inspect(handle).phase is Phase.RUNNING
    assert executor.sample(handle) is not None
    executor.kill(handle)
    assert executor.inspect(handle).exit_code == 137
    assert executor.sample(handle) is None
    assert executor.attempt(1).asked == ["pause", "resume", "terminate", "kill"]
    assert executor.list("fake") == [handle]
    executor.remove(handle)
    assert executor.inspect(handle).phase is Phase.MISSING
    assert executor.find("fake", 1, 1, handle.run_dir) is None


def test_any_call_can_be_made_to_fail(tmp_path):
    executor = FakeExecutor()
    executor.fail("create", EngineUnavailable("down"))
    with pytest.raises(EngineUnavailable):
        executor.create(spec(tmp_path))
    executor.fail("create", None)
    executor.create(spec(tmp_path))


def test_the_watcher_is_woken_when_an_attempt_changes(tmp_path):
    executor, woken, stop = FakeExecutor(), Event(), Event()
    watcher = Thread(target=executor.watch, args=(lambda _name: woken.set(), stop))
    watcher.start()
    assert woken.wait(5)
    woken.clear()
    executor.start(executor.create(spec(tmp_path)))
    assert woken.wait(5)
    stop.set()
    watcher.join(5)
    assert not watcher.is_alive()
