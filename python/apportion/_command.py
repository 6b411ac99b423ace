"""The command ``apportion`` of the Rust package, in this process."""

import signal
import sys

from ._native import RunError, Scenario
from ._native import main as _main


def _on_cluster(
    address: str, scenarios: list[Scenario], seeds: int, phase_check: bool, hold: bool, force: bool, quiet: bool
) -> bool:
    try:
        from . import _cluster
    except ModuleNotFoundError as error:
        raise RunError(f"a cluster needs Dask ({error}): pip install 'apportion[cluster]'") from error
    return _cluster.command(address, scenarios, seeds, phase_check, hold, force, quiet)


def main() -> None:
    """Run the command line, and exit with its status."""
    # The command handles signals itself, and its child processes would inherit the signals that Python ignores.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(_main(sys.argv, _on_cluster))
