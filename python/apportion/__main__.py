"""``python -m apportion`` is the command ``apportion``."""

from ._command import main

main()
