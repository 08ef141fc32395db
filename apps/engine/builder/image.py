"""Images: the runner from its Dockerfile, and a layer per set of requirements on top of it."""

from __future__ import annotations

import io
import logging
import re
import tarfile
from collections.abc import Callable, Mapping
from typing import Any

from docker import APIClient
from docker.errors import APIError, DockerException

from apps.engine.builder.locks import build_lock, digest_of
from apps.engine.builder.sources import ca_bundle, pip_config, proxies
from apps.engine.docker_api import BUILD_TIMEOUT_SECONDS, connect, image_details, words
from apps.engine.errors import BuildFailed, EngineUnavailable, ImageMissing
from apps.engine.redact import Redactor
from apps.engine.settings import EngineSettings
from apps.engine.types import EnvironmentSpec

logger = logging.getLogger(__name__)

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LABEL_BUILD = "clawpanel.build"
Say = Callable[[str], None]

# Index addresses may hold passwords: pip.conf stays in the first stage, which is removed after the build.
_LAYER = """\
ARG RUNNER
FROM ${RUNNER} AS build
ARG DIGEST
LABEL clawpanel.build=${DIGEST}
USER 0:0
COPY . /claw/build/
RUN python3 -m venv --without-pip --system-site-packages /claw/env \\
 && NO_COLOR=1 PIP_CONFIG_FILE=/claw/build/pip.conf python3 -m pip --python /claw/env/bin/python3 install \\
    --no-cache-dir --no-warn-script-location --progress-bar off --root-user-action ignore \\
    -r /claw/build/requirements.txt
FROM ${RUNNER}
COPY --from=build /claw/env /claw/env
ENV VIRTUAL_ENV=/claw/env PATH=/claw/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""


class ImageBuilder:
    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._known: set[str] = set()

    def environment(self, spec: EnvironmentSpec, say: Say) -> str:
        """The image for these requirements, built when missing."""
        runner = self.runner(say)
        if spec.is_plain:
            return runner
        digest = digest_of(_LAYER, runner, spec.requirements)
        return self._once(f"claw-env:{digest}", digest, say, lambda api, tag: self._layer(api, tag, spec, runner, say))

    def runner(self, say: Say) -> str:
        dockerfile = (self._settings.runner_context / "Dockerfile").read_bytes()
        digest = digest_of(dockerfile, self._settings.base)
        tag = f"clawpanel-runner:{digest}"
        return self._once(tag, digest, say, lambda api, tag: self._runner(api, tag, dockerfile, say))

    def _once(self, tag: str, digest: str, say: Say, build: Callable[[APIClient, str], None]) -> str:
        if tag in self._known:
            return tag
        api = connect(self._settings.docker_url, BUILD_TIMEOUT_SECONDS, certs=self._settings.docker_certs)
        try:
            if image_details(api, tag) is None:
                with build_lock(self._settings.home, digest, say):
                    if image_details(api, tag) is None:
                        build(api, tag)
        finally:
            api.close()
        self._known.add(tag)
        return tag

    def forget(self, tag: str) -> None:
        """The engine says that it does not have this image any more."""
        self._known.discard(tag)

    def _runner(self, api: APIClient, tag: str, dockerfile: bytes, say: Say) -> None:
        base = self._settings.base
        say(f"Building the image that spiders run in, from {base}. This happens once.")
        failed = _build(api, tag, {"Dockerfile": dockerfile}, {"BASE": base}, say)
        if failed:
            if image_details(api, base):
                raise ImageMissing(f"The runner image cannot be built from {base}: {failed}")
            raise ImageMissing(
                f"The base image {base} is not on this machine and cannot be pulled: load one and name it "
                "in CLAWPANEL_RUNNER_BASE (any image with Python 3)."
            )
        say("The image for spiders is ready.")

    def _layer(self, api: APIClient, tag: str, spec: EnvironmentSpec, runner: str, say: Say) -> None:
        say("Installing the requirements into an image. This happens once per set of requirements.")
        pip_env = self._settings.pip_env
        bundle = ca_bundle(pip_env)
        certificate = "/claw/build/ca.pem" if bundle else ""
        files = {
            "Dockerfile": _LAYER.encode(),
            "requirements.txt": spec.requirements.encode(),
            "pip.conf": pip_config(pip_env, certificate=certificate).encode(),
        }
        if bundle:
            files["ca.pem"] = bundle.read_bytes()
        digest = tag.partition(":")[2]
        arguments = {"RUNNER": runner, "DIGEST": digest} | proxies(pip_env)
        try:
            failed = _build(api, tag, files, arguments, say, network=self._settings.build_network)
        finally:
            _remove_first_stage(api, digest)
        if failed:
            raise BuildFailed(f"The requirements could not be installed: {failed}")
        say("The requirements are installed.")


def _build(
    api: APIClient,
    tag: str,
    files: Mapping[str, bytes],
    arguments: Mapping[str, str],
    say: Say,
    network: str | None = None,
) -> str:
    """Empty, or the last word of the build on why it failed."""
    redact = _plain
    last = ""
    try:
        stream = api.build(
            fileobj=_archive(files),
            custom_context=True,
            tag=tag,
            buildargs=dict(arguments),
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for message in stream:
            error = _say_message(message, say, redact)
            if error is not None:
                return last if "returned a non-zero code" in error and last else error
            text = redact(str(message.get("stream", ""))).strip()
            if text.startswith("ERROR"):
                last = text.splitlines()[-1].removeprefix("ERROR: ")
    except APIError as error:
        return redact(words(error))
    except (DockerException, OSError) as error:
        raise EngineUnavailable("The Docker Engine stopped answering during a build.") from error
    return ""


def _plain(text: str) -> str:
    """Without the engine's colours and without passwords of addresses."""
    return Redactor().redact(_COLOUR.sub("", text))


def _say_message(message: dict[str, Any], say: Say, redact: Callable[[str], str]) -> str | None:
    """The error that a message carries."""
    if "error" in message:
        error = redact(" ".join(str(message["error"]).split()))
        say(error)
        return error
    text = message.get("stream") or ""
    if not text and "progressDetail" in message and not message["progressDetail"]:
        text = f"{message.get('id', '')} {message.get('status', '')}"  # a pull; its percentages are left out
    for line in redact(text).splitlines():
        if line.strip():
            say(line.rstrip())
    return None


def _archive(files: Mapping[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def _remove_first_stage(api: APIClient, digest: str) -> None:
    try:
        filters = {"dangling": True, "label": [f"{LABEL_BUILD}={digest}"]}
        for image in api.images(filters=filters):
            api.remove_image(image["Id"], force=True)
    except (DockerException, OSError) as error:
        logger.warning("the first stage of a build was not removed: %s", error)
