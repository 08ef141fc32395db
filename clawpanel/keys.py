"""The install's own keys and name: given by the environment, else made once under the home folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet

from clawpanel import env
from clawpanel.refusal import CannotStart


def _kept(path: Path, make: str) -> str:
    """What the file says; made first, readable by the owner only, when it is missing. The first writer wins."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror}.") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(make + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return path.read_text().strip()
    except OSError as error:
        raise CannotStart(
            f"No right to write to {env.HOME} ({error.strerror}). Set CLAWPANEL_HOME to a folder of your own."
        ) from error


def secret_key() -> str:
    return env.SECRET_KEY or _kept(env.HOME / "keys" / "secret_key", secrets.token_urlsafe(50))


def encryption_keys() -> list[str]:
    """Newest first, as MultiFernet wants them."""
    return env.ENCRYPTION_KEYS or _kept(env.HOME / "keys" / "encryption_keys", Fernet.generate_key().decode()).split()


def install_name() -> str:
    """Short name that marks containers and networks as ours."""
    return env.INSTALL or _kept(env.HOME / "keys" / "install", secrets.token_hex(4))
