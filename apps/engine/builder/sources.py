"""Where packages come from: the host's pip settings, in the spelling of the tool that installs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_UV_NAMES = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_TRUSTED_HOST": "UV_INSECURE_HOST",
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_DEFAULT_TIMEOUT": "UV_HTTP_TIMEOUT",
}
_PASSED = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INSECURE_HOST",
    "UV_NATIVE_TLS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def ca_bundle(pip_env: Mapping[str, str]) -> Path | None:
    """The certificates this host trusts for its package index, when that was set."""
    for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        path = pip_env.get(name, "")
        if path and Path(path).is_file():
            return Path(path)
    return None


def proxies(pip_env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in pip_env.items() if name.lower() in _PROXIES}


def uv_environment(pip_env: Mapping[str, str]) -> dict[str, str]:
    env = {uv: pip_env[pip] for pip, uv in _UV_NAMES.items() if pip_env.get(pip)}
    env |= {name: pip_env[name] for name in _PASSED if pip_env.get(name)}
    return env | proxies(pip_env)


def pip_config(pip_env: Mapping[str, str], *, certificate: str) -> str:
    """The settings as a pip.conf for a build in a container; paths of this host mean nothing there."""
    lines = ["[global]", "disable-pip-version-check = true", "no-input = true"]
    if certificate:
        lines.append(f"cert = {certificate}")
    for name in ("index-url", "extra-index-url", "find-links", "trusted-host", "default-timeout", "retries"):
        value = pip_env.get(f"PIP_{name.upper().replace('-', '_')}", "")
        parts = [part for part in value.split() if name != "find-links" or "://" in part]
        if parts:
            lines.append(f"{name} = " + "\n    ".join(parts))
    return "\n".join([*lines, ""])
