"""The build backend of the Python package: maturin's, which first copies the programs and libraries of ptxvm into the package.

``pip install .`` in this folder needs Rust. The variable ``PTXVM_TREE`` names a tree made by ``cargo xtask dist --stage``; by default
the backend makes the tree.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import maturin
from maturin import (  # noqa: F401 (the names that pip asks for)
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

PACKAGE = Path(__file__).resolve().parent.parent / "ptxvm"
ROOT = PACKAGE.parent.parent


def _put(tree: Path) -> None:
    """Links the parts of a tree into the package, or copies them where that cannot be."""
    for part in ("bin", "lib", "share"):
        place = PACKAGE / part
        shutil.rmtree(place, ignore_errors=True)
        try:
            shutil.copytree(tree / part, place, copy_function=os.link)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(tree / part, place)


def _stage() -> None:
    tree = os.environ.get("PTXVM_TREE")
    if tree:
        _put(Path(tree))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = ["cargo", "run", "--release", "--quiet", "--package", "xtask", "--", "dist", "--stage", folder]
        subprocess.run(command, check=True, cwd=ROOT)
        _put(Path(folder))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _stage()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _stage()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("there is no source distribution: the package is built from a clone of the repository")
