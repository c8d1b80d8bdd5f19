"""``python -m ptxvm``: the command-line program, which is part of the package."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).resolve().parent


def program() -> Path:
    """The program ``ptxvm`` of this package.

    >>> from ptxvm.__main__ import program
    >>> program().name
    'ptxvm'
    """
    path = PACKAGE / "bin" / "ptxvm"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: the package was built without its programs")
    if not os.access(path, os.X_OK):
        # Some installers do not keep the permission.
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def main() -> NoReturn:
    """Becomes the program, with the same arguments."""
    try:
        path = program()
    except OSError as error:
        print(f"ptxvm: {error}", file=sys.stderr)
        sys.exit(2)
    sys.stdout.flush()
    os.execv(path, ["ptxvm", *sys.argv[1:]])


if __name__ == "__main__":
    main()
