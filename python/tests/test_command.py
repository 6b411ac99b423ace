"""The command installed by the package."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

APPORTION = str(Path(sys.executable).with_name("apportion"))


def run(*words: str, **keywords: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([APPORTION, *words], capture_output=True, text=True, timeout=60, **keywords)  # type: ignore[call-overload]
    assert isinstance(done, subprocess.CompletedProcess)
    return done


def test_it_lists_and_explains() -> None:
    assert "pps/table1-sender" in run("list").stdout
    assert run("explain", "pfd").stdout.startswith("pfd: buffer policy")
    assert run("--version").stdout.startswith("apportion ")
    module = subprocess.run([sys.executable, "-m", "apportion", "list"], capture_output=True, text=True, timeout=60)
    assert module.stdout == run("list").stdout


def test_it_runs_a_scenario(tmp_path: Path) -> None:
    done = run("run", "quickstart", "--set", "stop=2s", "--set", "measure_from=1s", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])
    assert (tmp_path / "results" / "quickstart" / "1" / "report.html").exists()


def test_its_status_is_that_of_the_command() -> None:
    assert run("explain", "nothing").returncode == 2
    assert run("--nothing").returncode == 2
    assert run("reproduce", "nothing/nothing").returncode == 2


def test_it_reproduces_a_claim(tmp_path: Path) -> None:
    done = run("reproduce", "--help", cwd=tmp_path)
    assert done.returncode == 0 and "seeds" in done.stdout


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    words = [APPORTION, "run", "quickstart", "--set", "stop=2s", "--set", "measure_from=1s", "--seeds", "2000", "--quiet"]
    process = subprocess.Popen(words, cwd=tmp_path)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 1
    record = json.loads((tmp_path / "results" / "quickstart" / "1" / "run.json").read_text())
    assert record["complete"] is False


def can_make_namespaces() -> bool:
    try:
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"], capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@pytest.mark.skipif(not can_make_namespaces(), reason="the system forbids namespaces")
def test_a_shell_runs_its_command_behind_a_link() -> None:
    assert run("shell", "--", "true").returncode == 0
    assert run("shell", "--quiet", "--", "sh", "-c", "exit 7").returncode == 7
    # The command does not ignore the signals that Python ignores.
    ignored = run("shell", "--quiet", "--", "grep", "SigIgn", "/proc/self/status")
    assert int(ignored.stdout.split()[1], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0
    ping = run("shell", "--delay", "20ms", "--quiet", "--", "sh", "-c", "ping -c 1 -q $APPORTION_FAR || true")
    assert ping.returncode == 0 and ("min/avg" not in ping.stdout or float(ping.stdout.split("= ")[1].split("/")[0]) >= 40)


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(["sh", "-c", f"{APPORTION} list | head -1"], capture_output=True, text=True, timeout=60)
    assert done.stderr == "" and os.linesep in done.stdout
