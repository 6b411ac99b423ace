"""The laws that every queue discipline keeps."""

from __future__ import annotations

from . import _native
from ._disciplines import describe

__all__ = ["LawError", "check"]


class LawError(AssertionError):
    """A discipline breaks a law. The message has the law and the shortest sequence of events found that shows it."""


def check(cls: type, *, limit: int | None = None, holds_back: bool = False, cases: int = 256) -> None:
    """Try a class that is a discipline, with its default parameters.

    It is put through random sequences of arrivals, requests and pauses, the same each time. Every packet leaves or is dropped, once;
    packets of a flow leave in order; while packets wait a request gets one; only ECN-capable packets are marked; the same
    sequence gives the same departures.

    Parameters
    ----------
    cls : type
        The class, as :func:`apportion.register` takes it. It need not be registered.
    limit : int, optional
        At most so many packets wait in it. Default None: that is not checked.
    holds_back : bool
        It may refuse a request while packets wait, as a shaper does, and then has ``wakeup``. Default False.
    cases : int
        How many sequences. Default 256.

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
    name, scheduler, parameters = describe(cls)
    broken = _native.check_laws(cls, name, scheduler, parameters, limit, holds_back, cases)
    if broken is not None:
        raise LawError(broken)
