"""The laws that every queue discipline and every congestion control keeps."""

from __future__ import annotations

from . import _native
from ._disciplines import describe, is_control

__all__ = ["LawError", "check"]


class LawError(AssertionError):
    """A class breaks a law. The message has the law and the shortest sequence of events found that shows it."""


def check(cls: type, *, limit: int | None = None, holds_back: bool = False, cases: int = 256) -> None:
    """Check a discipline, with its default parameters, or a congestion control against the laws.

    A discipline gets random sequences of arrivals, requests and pauses, the same in each check. Every packet leaves or is dropped, once;
    packets of a flow leave in order; a request gets a packet unless the backlog is empty; only ECN-capable packets are marked; the
    same sequence gives the same departures.

    A congestion control gets random sequences of ACKs, marks, losses and timeouts, the same in each check. Its window and threshold stay
    above zero, and the window finite; a timeout does not raise the threshold above the window; without an ACK no window grows; the same
    sequence gives the same windows. Then a path fails for ten seconds: a minute later its utilisation is at least half.

    Parameters
    ----------
    cls : type
        A class for :func:`apportion.register`. It need not be registered.
    limit : int, optional
        Maximum backlog of a discipline in packets. Default None: not checked.
    holds_back : bool
        Whether a discipline may refuse a request despite a backlog, like a shaper; it then has ``wakeup``. Default False.
    cases : int
        Number of sequences for a discipline. Default 256, the number for a congestion control.

    Raises
    ------
    LawError
        If the class breaks a law.
    Exception
        An exception in the class.

    Examples
    --------
    >>> class Forgetful:
    ...     def __init__(self, link):
    ...         self.waiting = None
    ...     def enqueue(self, now, packet):
    ...         self.waiting = packet
    ...     def dequeue(self, now):
    ...         packet, self.waiting = self.waiting, None
    ...         return packet
    >>> check(Forgetful)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    apportion.laws.LawError: the law of order within a flow is broken: ...
    """
    if is_control(cls):
        broken = _native.check_control_laws(cls)
    else:
        name, scheduler, parameters = describe(cls)
        broken = _native.check_laws(cls, name, scheduler, parameters, limit, holds_back, cases)
    if broken is not None:
        raise LawError(broken)
