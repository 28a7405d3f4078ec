import pytest
from keeping import Confined, make_home


@pytest.fixture
def confined(binary, tmp_path):
    return Confined(binary, tmp_path / "own")


@pytest.fixture
def home(tmp_path):
    return make_home(tmp_path / "home")
