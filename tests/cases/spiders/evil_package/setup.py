# Runs code when pip builds it (measured: pip download and pip install both do).
# Right: the build runs in a sandbox with no secrets; the marker never appears on the worker or web host.
import os

try:
    open(os.path.join(os.environ.get("MARK_DIR", "/tmp"), "CLAWPANEL_BUILD_RAN"), "w").write(
        repr((os.getuid(), sorted(os.environ)))
    )
except OSError:
    pass
from setuptools import setup

setup(name="cp-evil-case", version="1.0", py_modules=[])
