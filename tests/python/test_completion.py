"""What shells complete with, and the manual's page: made from the verbs themselves, and taken by those who read them."""

import subprocess

import pytest

from common import FAULTLINE


def printed(shell):
    return subprocess.run([FAULTLINE, "completion", shell], capture_output=True, text=True, check=True).stdout


def completed(line):
    """What bash offers at the end of the line."""
    words = line.split(" ")
    script = (
        f"{printed('bash')}\nCOMP_WORDS=({' '.join(repr(word) for word in words)})\nCOMP_CWORD={len(words) - 1}\n"
        '_faultline\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    "line, offered, not_offered",
    [
        ("faultline ", ["explain", "plan", "run", "view", "--help"], ["keep-aside"]),
        ("faultline ex", ["explain"], ["plan"]),
        ("faultline plan --gpu H", ["H100-80GB", "H200"], ["T4"]),
        ("faultline explain --format s", ["sarif"], ["json"]),
        ("faultline replay --format ", ["json", "terminal"], ["sarif"]),
        ("faultline plan --st", ["--steps"], ["--set"]),
        ("faultline plan -- --st", [], ["--steps"]),
        ("faultline run --gpu ", ["virtual"], ["T4", "H200"]),
        ("faultline run --gpu virtual :", ["T4", "H200"], ["virtual"]),
        ("faultline run --gpu virtual : H", ["H100-80GB", "H200"], ["T4", "virtual"]),
        ("faultline rule memory/l", ["memory/leak"], ["memory/grown"]),
        ("faultline completion ", ["zsh", "man"], ["explain"]),
    ],
)
def test_bash_is_offered_what_the_verb_takes(line, offered, not_offered):
    words = completed(line)
    assert set(offered) <= set(words) and not set(not_offered) & set(words), words


def test_every_option_of_the_help_is_in_every_form():
    verbs = ("explain", "replay", "run", "plan", "view", "diff", "pack", "rule", "gpus", "demo", "doctor")
    forms = {shell: printed(shell) for shell in ("bash", "zsh", "fish", "man")}
    for verb in verbs:
        shown = subprocess.run([FAULTLINE, verb, "--help"], capture_output=True, text=True, check=True).stdout
        names = {
            word.rstrip(",").split(",")[-1].split("=")[0]
            for line in shown.splitlines()
            if line.startswith("  -")
            for word in line.split()[:1]
        }
        assert names
        for name in names:
            assert name in forms["bash"] and f"'{name}[" in forms["zsh"], (verb, name)
            assert f" -l {name[2:]}" in forms["fish"] or f" -s {name[1:]}" in forms["fish"], (verb, name)
            assert name.replace("-", "\\-") in forms["man"], (verb, name)


def test_no_line_of_the_manual_is_a_command_by_accident():
    allowed = {".TH", ".SH", ".B", ".br", ".TP", ".PP"}
    assert {line.split()[0] for line in printed("man").splitlines() if line.startswith((".", "'"))} <= allowed
