"""The connection to the Docker Engine; every exception of its libraries becomes one of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import urllib3
from docker import APIClient
from docker.errors import APIError, DockerException, ImageNotFound
from docker.tls import TLSConfig

from apps.engine.errors import CreateFailed, EngineUnavailable

DEFAULT_TIMEOUT_SECONDS = 10
HEALTH_TIMEOUT_SECONDS = 4
BUILD_TIMEOUT_SECONDS = 1800

NOT_MODIFIED = 304
NOT_FOUND = 404
CONFLICT = 409
_SERVER_ERROR = 500

# What is in the words of a 500 that will be the same at the next try: the container is at fault, not the engine.
_FAULTS_OF_THE_CONTAINER = ("oci runtime", "invalid mount", "no such file", "executable file not found", "mount")


class _Client(APIClient):
    """Takes nothing from the machine's own variables: REQUESTS_CA_BUNDLE would win over the engine's certificate, and
    a proxy is for what is beyond the network."""

    @property
    def trust_env(self) -> bool:
        return False

    @trust_env.setter
    def trust_env(self, _: bool) -> None:
        return


def connect(url: str, timeout: int = DEFAULT_TIMEOUT_SECONDS, *, certs: Path | None = None) -> APIClient:
    """Asks the engine for its version; `certs` is a folder as Docker's tools have it. Raises `EngineUnavailable`."""
    with translated():
        tls = _tls(certs) if certs is not None else False
        return _Client(base_url=url or None, version="auto", timeout=timeout, tls=tls)


def _tls(certs: Path) -> TLSConfig:
    pair = (str(certs / "cert.pem"), str(certs / "key.pem"))
    return TLSConfig(client_cert=pair, ca_cert=str(certs / "ca.pem"), verify=True)


def create_container(api: APIClient, config: dict[str, Any], name: str) -> str:
    """The new container's id. Raises what docker-py raises."""
    made: dict[str, Any] = api.create_container_from_config(config, name=name)  # type: ignore[no-untyped-call]  # stubs
    return str(made["Id"])


def image_details(api: APIClient, image: str) -> dict[str, Any] | None:
    with translated():
        try:
            details: dict[str, Any] = api.inspect_image(image)  # type: ignore[no-untyped-call]  # stubs
        except ImageNotFound:
            return None
        return details


@contextmanager
def translated() -> Iterator[None]:
    """Timeouts surface as half a dozen exceptions: none of them says anything about the attempt."""
    try:
        yield
    except APIError as error:
        raise from_api_error(error) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError) as error:
        raise EngineUnavailable(f"The Docker Engine does not answer ({_words(error)}).") from error


def from_api_error(error: APIError) -> CreateFailed | EngineUnavailable:
    text = words(error)
    status = error.status_code or 0
    if status < _SERVER_ERROR or any(part in text.lower() for part in _FAULTS_OF_THE_CONTAINER):
        return CreateFailed(f"Docker refused: {text}")
    return EngineUnavailable(f"The Docker Engine reports an error: {text}")


def words(error: APIError) -> str:
    return " ".join((error.explanation or str(error)).split())[:500]


def _words(error: BaseException) -> str:
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return "no answer in time"
    return " ".join(str(error).split())[:200] or type(error).__name__
