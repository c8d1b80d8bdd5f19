"""Checks of sweeps: workers import them by this module's name."""
import os
import time
from pathlib import Path


def right(case, arrays):
    return arrays[0][0] == case.arguments[0] ** 2


def wrong(case, arrays):
    assert arrays[0][0] < 9, f"{arrays[0][0]} is too large"


def raises(case, arrays):
    raise KeyError("nothing")


def dies(case, arrays):
    """Ends its process, as a machine that is switched off does: the first time at case 2, always at case 4."""
    place = Path(os.environ["SWEEP_FOLDER"])
    n = case.arguments[0]
    if n == 4 or (n == 2 and not (place / "died").exists()):
        (place / "died").touch()
        os._exit(9)
    return right(case, arrays)


def slow(case, arrays):
    """Takes a moment, and says which process it was."""
    folder = Path(os.environ["SWEEP_FOLDER"])
    (folder / f"{case.label.split()[1]}-{os.getpid()}-{time.time_ns()}").touch()
    time.sleep(0.1)
    return right(case, arrays)
