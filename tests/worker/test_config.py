"""What a worker refuses of its configuration."""

from __future__ import annotations

import subprocess
import sys

import pytest

from floeberg.process.config import load_config
from floeberg.protocol.errors import BadConfig
from floeberg.worker.config import WorkerConfig
from tests.support.processes import environment


@pytest.mark.parametrize("amount", ["", "-1", "0", "nan", "inf", "much"])
def test_an_amount_of_a_resource_is_a_positive_number(amount: str) -> None:
    with pytest.raises(BadConfig, match=f"'ray_resources': lake={amount} is no amount"):
        load_config(WorkerConfig, flags={"ray_resources": {"lake": amount}})


def test_without_ray_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "sys.modules['ray'] = None\n"
        "sys.argv = ['worker', '--on', 'ray']\n"
        "from floeberg.worker.__main__ import main\n"
        "sys.exit(main())"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True
    )

    assert ended.returncode == 2
    assert ended.stderr == (
        "floeberg worker: 'on' = ray needs a package that is missing, ray:"
        " pip install 'floeberg[ray]'\n"
    )
