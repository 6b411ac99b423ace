"""The laws that every queue discipline and every congestion control keeps."""

from __future__ import annotations

from . import _native
from ._disciplines import describe, is_control

__all__ = ["LawError", "check"]


class LawError(AssertionError):
    """A class breaks a law. The message has the law and the shortest sequence of events found that shows it."""


def check(cls: type, *, limit: int | None = None, holds_back: bool = False, cases: int = 256) -> None:
    """Try a class that is a discipline, with its default parameters, or a congestion control.

    A discipline is put through random sequences of arrivals, requests and pauses, the same each time. Every packet leaves or is dropped, once;
    packets of a flow leave in order; while packets wait a request gets one; only ECN-capable packets are marked; the same
    sequence gives the same departures.

    A congestion control is put through random sequences of ACKs, marks, losses and timeouts, the same each time. Its window and threshold stay above
    zero, and the window finite; a timeout does not raise the threshold above the window; without an ACK no window grows; the same sequence gives
    the same windows. Then a path fails for ten seconds: a minute later half of it is used.

    Parameters
    ----------
    cls : type
        The class, as :func:`apportion.register` takes it. It need not be registered.
    limit : int, optional
        At most so many packets wait in a discipline. Default None: that is not checked.
    holds_back : bool
        A discipline may refuse a request while packets wait, as a shaper does, and then has ``wakeup``. Default False.
    cases : int
        How many sequences for a discipline. Default 256, which are those for a congestion control.

    Raises
    ------
    LawError
        If it breaks a law.
    Exception
        What the class raises.

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
