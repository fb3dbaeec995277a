"""The profile file, and a compactor that takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentscope_compaction import Compactor, InMemoryArchive, Thresholds
from agentscope_compaction.agents.profile import Profile, load_profile, save_profile
from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.asking import history

PROFILE = Profile("scripted-1", Thresholds(0.2, 0.6), 0.04, (0.01, 0.1), 12, "2026-01-31")


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    """What is saved is loaded, and the file has the documented fields."""
    path = tmp_path / "profile.json"
    save_profile(PROFILE, path)
    assert load_profile(path) == PROFILE
    assert json.loads(path.read_text("utf-8")) == {
        "version": 1,
        "model": "scripted-1",
        "thresholds": {"call": 0.2, "result": 0.6},
        "loss": 0.04,
        "interval": [0.01, 0.1],
        "histories": 12,
        "created": "2026-01-31",
    }
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("as_text", [True, False])
def test_a_compactor_takes_the_file(tmp_path: Path, as_text: bool) -> None:
    """A path, as text or not, sets both thresholds of the options."""
    path = tmp_path / "profile.json"
    save_profile(PROFILE, path)
    options = Compactor(profile=str(path) if as_text else path).options
    assert (options.keep_call_threshold, options.keep_result_threshold) == (0.2, 0.6)


@pytest.mark.parametrize("profile", [Thresholds(0.1, 0.3), {"call": 0.1, "result": 0.3}])
def test_a_compactor_takes_thresholds(profile: Thresholds | dict[str, float]) -> None:
    """Thresholds as such work as before."""
    options = Compactor(profile=profile).options
    assert (options.keep_call_threshold, options.keep_result_threshold) == (0.1, 0.3)


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "warnings"), [("scripted-1", 0), ("scripted-2", 1)])
async def test_another_model_than_the_profiles_is_warned_of_once(
    name: str, warnings: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The model changed after the calibration; the thresholds are used all the same."""
    path = tmp_path / "profile.json"
    save_profile(PROFILE, path)
    model = ScriptedDecisionModel(name=name)
    compactor = Compactor(model, InMemoryArchive(), None, ["A"], profile=path)
    for calls in (12, 13):
        proposal = await compactor.propose(history(calls).messages)
        assert proposal.stats["model"] == name
        assert proposal.stats["thresholds"] == {"call": 0.2, "result": 0.6}
    assert [r.message for r in caplog.records if "calibrate again" in r.message] == [
        f"the profile was calibrated for the model scripted-1, but {name} answered: calibrate again"
    ] * warnings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({**PROFILE.as_json(), "version": 2}),
        json.dumps({**PROFILE.as_json(), "version": True}),
        json.dumps({**PROFILE.as_json(), "thresholds": {"call": 2, "result": 0.5}}),
        json.dumps({**PROFILE.as_json(), "interval": 3}),
        json.dumps({k: v for k, v in PROFILE.as_json().items() if k != "thresholds"}),
    ],
)
def test_a_bad_file_is_one_error(tmp_path: Path, text: str) -> None:
    """Whatever is wrong with the file, the compactor says so when it is made."""
    path = tmp_path / "profile.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match="unusable profile"):
        Compactor(profile=path)


def test_a_missing_file_is_named_as_such(tmp_path: Path) -> None:
    """A path that leads nowhere is a configuration error too."""
    with pytest.raises(ConfigurationError, match="No such file"):
        Compactor(profile=tmp_path / "nothing.json")
