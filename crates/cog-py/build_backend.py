"""Builds the package with maturin, unless the interpreter cannot load it."""

import platform
import sys

if platform.python_implementation() != "CPython":
    sys.exit(
        f"cognitive needs CPython, and this is {platform.python_implementation()}: the native module uses the stable interface of CPython "
        "(abi3), and streams are cancelled when their last reference goes, which PyPy does later. Nothing was installed."
    )

from maturin import *  # noqa: E402, F403
