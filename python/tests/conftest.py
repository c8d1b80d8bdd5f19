"""What tests share."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import ptxvm  # noqa: E402


@pytest.fixture
def vm():
    return ptxvm.Vm(cache=False)
