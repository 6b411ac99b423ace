"""Disciplines, congestion controls and transport stacks that are Python classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, overload

from . import _native
from ._native import Buffer, Link, Packet, StackEnd

__all__ = ["Buffer", "Link", "Packet", "StackEnd", "describe", "is_control", "register"]

_Class = TypeVar("_Class", bound=type)


@overload
def register(cls: _Class, /, *, name: str | None = None) -> _Class: ...
@overload
def register(cls: None = None, /, *, name: str | None = None) -> Callable[[_Class], _Class]: ...
def register(cls: Any = None, /, *, name: str | None = None) -> Any:
    """Register a class as a queue discipline, a congestion control or a transport stack, named in scenarios; also a decorator.

    A class is a whole discipline, a buffer policy, a congestion control or a transport stack. A discipline is made for each queue of each replication, as
    ``cls(link, **parameters)``.

    *A whole discipline* has ``enqueue(self, now, packet)``, which keeps the packet or calls ``packet.drop()``, and
    ``dequeue(self, now)``, which returns the packet to send, or None. A discipline that is not work-conserving also has
    ``wakeup(self)``, which returns the time of the next ``dequeue``.

    *A buffer policy* has ``admit(self, now, packet, buffer)``, which returns True or False. Two methods are optional.
    ``victim(self, now, buffer)`` is called after each arrival until it returns None; it returns the flow that loses its last packet, or
    ``(flow, "head")``. ``dequeue(self, now, buffer)`` takes packets with ``buffer.pop()`` and returns one of them. The attribute
    ``scheduler`` is ``"fifo"`` (the default), ``"drr"``, ``"rr"``, ``"stfq"``, ``"scfq"`` or ``"wf2q_plus"``.

    *A congestion control* has ``on_ack(self, window, ack)``, which sets ``window.cwnd`` and ``window.ssthresh``, in segments. Its
    ``on_loss(self, window, event)`` returns the new window in segments, ``window`` if it has set that itself, or None to ignore the
    loss. It is made for each connection, as ``cls(connection)``. Notes list all hooks, their arguments and class attributes.

    *A transport stack*, which scenarios name in ``transport``, has ``receive(self, now, data, ecn)`` and ``transmit(self, now)``. It is
    made for each end of each connection, as ``cls(end, **parameters)``; notes have the rest.

    Times are in seconds. Disciplines may have ``set_limit(self, packets)``, ``set_rate(self, rate)`` and ``set_weight(self, flow, weight)``, for
    scenarios that change these during a run. ``statistics(self)``, called at the end, returns a dict of names and numbers for
    :attr:`apportion.Results.statistics`. An exception in a method ends the run; :meth:`apportion.Scenario.run` raises it.

    Parameters
    ----------
    cls : type
        The class. The parameters of a discipline are the arguments of ``__init__`` after ``link``, all with defaults: numbers, True or
        False, or quantities of scenarios. Quantities arrive as numbers: ``"50p"`` as packets, ``"64kB"`` as bytes, ``"5ms"`` as seconds,
        ``"10Mbit"`` as bit/s, ``"2%"`` as a fraction. Keys of every queue are reserved: ``kind``, ``drop``, ``shaper``, ``rate`` and others.
    name : str, optional
        The name in scenarios. Default: the attribute ``name``, or the name of the class in lower case with underscores. Registering a name
        again replaces the class in scenarios made from then on.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ValueError
        If the name is taken, or the class lacks a method or a default.

    Notes
    -----
    Replications with such a class run one at a time, since the interpreter runs a single thread. To use more cores, run several
    processes.

    The hooks of a congestion control; windows and packets in flight count segments, times are in s, sizes in bytes, rates in bit/s:

    - ``on_ack(window, ack)``: an ACK opens the window; each ACK if the control moves the window.
    - ``on_loss(window, event)``: a loss begins recovery. Returns the segments left; ``window``, if moved; None to ignore the loss.
    - ``on_repaired_loss(window, event)``: a tail loss probe repaired a loss. Returns likewise; default ``on_loss``.
    - ``on_mark(window, event)``: a packet was marked, once a window. Returns likewise; default ``on_loss``.
    - ``on_timeout(window, event)``: the retransmission timer expired. Returns the threshold; default half of ``event.basis``.
    - ``on_sent(window, sent)``: a segment leaves.
    - ``on_feedback(feedback)``: an ACK arrives, before its evaluation.
    - ``on_segment_lost(window, now, number)``: a segment is declared lost.
    - ``on_recovered(window)``: the data outstanding at congestion has arrived.
    - ``on_undone()``: the last recovery was needless.
    - ``on_app_limited(in_flight)``: there is no more to send, and room in the window.
    - ``on_restart()``: the window restarts after idle time.
    - ``pacing_rate(srtt)``: returns the rate, or None: 1.2 windows a round trip, 2 in slow start.
    - ``moves_window(phase)``: returns whether it moves the window itself in this phase, also in recovery; default False.
    - ``has_slow_start()``: returns whether HyStart may end its slow start; default True.
    - ``mark_share()``: returns the share of segments taken as marked, 0 to 1; default 1.

    Their arguments:

    - ``connection``: ``initial_window``; ``segment`` and ``wire``, a full segment without and with headers.
    - ``window``: ``cwnd`` and ``ssthresh``, writable except in ``on_timeout`` and ``on_segment_lost``; ``is_slow_start``;
      ``grow_as_reno(counted, abc_limit)``.
    - ``ack``: ``now``; ``phase``: ``"open"``, ``"cwr"``, ``"recovery"`` or ``"loss"``; ``acked``, and as Reno counts them ``counted`` and
      ``abc_limit``; ``delivered``, ``lost``, ``prior_in_flight``, ``in_flight``; the numbers ``number``, ``last_sent``, ``latest``; ``rtt``,
      ``srtt``, ``min_rtt``; ``slow_start``, ``is_limited``, ``may_grow``.
    - ``event``: ``now``; ``cwnd``, ``basis`` (what Reno halves), ``receive_window``, ``in_flight``; ``again``: a timeout whose threshold
      was lowered before.
    - ``sent``: ``now``, ``number``, ``in_flight``.
    - ``feedback``: ``now``, ``number``, ``last_sent``, ``bytes``, ``segments``, ``marked``, ``counts_marks``, ``one_way_delay``.

    Class attributes of a congestion control, with defaults:

    - ``name`` (from the class name), ``reference`` (``"–"``): its name in scenarios, its specification.
    - ``paces`` (False): segments leave at a rate.
    - ``needs_rack`` (False): it measures by the record of segments, which TCP has with RACK only.
    - ``one_way_delay`` (False): TCP's receiver reports ``feedback.one_way_delay``.
    - ``quic`` (True): QUIC has it too.
    - ``marks`` (``"one"``): ``"one"`` mark per window (RFC 3168), or each one: ``"echoed"`` (RFC 8257), ``"counted"`` (RFC 9768).

    Its losses are repaired by selective acknowledgments, as for ``sack`` in profiles without RACK. The repair of ``reno`` or ``newreno`` needs
    a control in Rust.

    A transport stack exchanges datagrams of real bytes over UDP with the other end, an object of the same class:

    - ``end``: ``is_source``, ``number`` of the connection, ``seed`` of this end.
    - ``supply(now, size)``, at the source: the application has ``size`` more bytes; None: data without end.
    - ``start(now)`` at both ends and ``close(now)`` at the source, optional: the connection opens; the supply ends.
    - ``receive(now, data, ecn)``: a datagram arrives; ``ecn`` is ``"not_ect"``, ``"ect0"``, ``"ect1"`` or ``"ce"``.
    - ``transmit(now)``: returns the next datagram, as bytes or as bytes and an ECN field, or None. It is called again until then.
    - ``timer()`` returns the time of the next ``on_timer(now)``, or None.
    - Attributes that are read after each call: ``delivered``, bytes of the application in order at this end; ``done``, at the source:
      all is acknowledged after ``close``. Optional: ``lost``, ``timeouts``, ``reductions``, ``window`` in bytes, ``srtt``; ``failure``,
      why the connection was aborted or closed for an error, or None: a run warns of it.
    - Class attributes, with defaults: ``packet`` (1500), ``payload`` (1400), ``ack`` (60), bytes on the wire of a full packet, of the
      application in it, and of an acknowledgement; ``ecn`` (False): it sets the ECN field. A datagram's headers have 28 bytes.

    Examples
    --------
    >>> import apportion as ap
    >>> from collections import deque
    >>> @ap.register
    ... class Last:
    ...     "The last packet first."
    ...     def __init__(self, link, limit="50p"):
    ...         self.limit, self.waiting = limit, deque()
    ...     def enqueue(self, now, packet):
    ...         self.waiting.append(packet)
    ...         if len(self.waiting) > self.limit:
    ...             self.waiting.popleft().drop("push_out")
    ...     def dequeue(self, now):
    ...         return self.waiting.pop() if self.waiting else None
    >>> s = ap.dumbbell(2, queue=["fifo", {"kind": "last", "limit": "20p"}], stop="12s", measure_from="2s")
    >>> len(s.run().flows)
    4

    >>> @ap.register
    ... class Scalable:
    ...     "A hundredth for each segment that is acknowledged, and an eighth for a loss."
    ...     def __init__(self, connection):
    ...         pass
    ...     def on_ack(self, window, ack):
    ...         if ack.may_grow:
    ...             window.cwnd += ack.acked if window.is_slow_start else 0.01 * ack.acked
    ...     def on_loss(self, window, event):
    ...         return 0.875 * event.basis
    >>> s = ap.dumbbell({"one": {"tcp": ["cubic", "scalable"]}}, stop="12s", measure_from="2s")
    >>> len(s.run().flows)
    2
    """
    if cls is None:
        return lambda cls: register(cls, name=name)
    if is_stack(cls):
        _native.register_stack(cls, name or _name(cls), _summary(cls, "A transport stack in Python."), _sizes(cls), _parameters(cls, "end"))
        return cls
    if is_control(cls):
        _native.register_control(cls, name or _name(cls), _summary(cls, "A congestion control in Python."), _attributes(cls))
        return cls
    described = describe(cls)
    _native.register(cls, name or described[0], _summary(cls, "A discipline in Python."), *described[1:])
    return cls


def is_stack(cls: Any) -> bool:
    """Return whether a class is a transport stack."""
    needed = ("receive", "transmit", "supply", "timer", "on_timer")
    missing = [name for name in needed if not hasattr(cls, name)]
    if not isinstance(cls, type) or "receive" in missing or "transmit" in missing:
        return False
    if missing:
        raise ValueError(f"{cls.__name__} has no {' and no '.join(missing)}: a transport stack has {', '.join(needed)}")
    return True


# Sizes of a stack's packets, and whether it sets the ECN field.
_SIZES: dict[str, int | bool] = {"packet": 1500, "payload": 1400, "ack": 60, "ecn": False}


def _sizes(cls: type) -> dict[str, int | bool]:
    found: dict[str, int | bool] = {name: getattr(cls, name, default) for name, default in _SIZES.items()}
    for name, value in found.items():
        if not isinstance(value, type(_SIZES[name])) or not 0 <= value <= 65535:
            wanted = "True or False" if name == "ecn" else "whole bytes from 0 to 65535"
            raise ValueError(f"{cls.__name__}.{name} is {value!r}; write {wanted}")
    return found


def is_control(cls: Any) -> bool:
    """Return whether a class is a congestion control."""
    missing = [name for name in ("on_ack", "on_loss") if not hasattr(cls, name)]
    if not isinstance(cls, type) or len(missing) == 2:
        return False
    if missing:
        raise ValueError(f"{cls.__name__} has no {missing[0]}: a congestion control has on_ack and on_loss")
    try:
        inspect.signature(cls).bind(None)
    except TypeError:
        raise ValueError(f"{cls.__name__} is made as {cls.__name__}(connection): give __init__ this one argument") from None
    return True


# Default requirements of a congestion control on the transport.
_ATTRIBUTES: dict[str, str | bool] = {"reference": "–", "paces": False, "needs_rack": False, "one_way_delay": False, "quic": True, "marks": "one"}


def _attributes(cls: type) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {name: getattr(cls, name, default) for name, default in _ATTRIBUTES.items()}
    for name, value in found.items():
        kind = type(_ATTRIBUTES[name])
        if not isinstance(value, kind):
            raise ValueError(f"{cls.__name__}.{name} is {value!r}; write {'text' if kind is str else 'True or False'}")
    return found


def describe(cls: type) -> tuple[str, str | None, list[tuple[str, str]]]:
    """Return name, scheduler (None for a whole discipline) and parameters with defaults of a class."""
    if not isinstance(cls, type):
        raise ValueError(f"{cls!r} is no class")
    if hasattr(cls, "admit"):
        scheduler = getattr(cls, "scheduler", "fifo")
    else:
        scheduler = None
        missing = [name for name in ("enqueue", "dequeue") if not hasattr(cls, name)]
        if missing:
            raise ValueError(
                f"{cls.__name__} has no {' and no '.join(missing)}: write both, or admit for a buffer policy, on_ack and on_loss for a "
                "congestion control, receive and transmit for a transport stack"
            )
    return _name(cls), scheduler, _parameters(cls)


def _name(cls: type) -> str:
    name = getattr(cls, "name", None)
    return name if isinstance(name, str) else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def _summary(cls: type, default: str) -> str:
    return (inspect.getdoc(cls) or default).split("\n\n")[0].replace("\n", " ")


def _parameters(cls: type, first: str = "link") -> list[tuple[str, str]]:
    arguments = list(inspect.signature(cls).parameters.values())
    if not arguments or arguments[0].kind not in (arguments[0].POSITIONAL_ONLY, arguments[0].POSITIONAL_OR_KEYWORD):
        raise ValueError(f"{cls.__name__} is made as {cls.__name__}({first}, ...): give __init__ an argument `{first}`")
    found = []
    for argument in arguments[1:]:
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            continue
        if argument.default is argument.empty:
            raise ValueError(f"{cls.__name__}: the parameter `{argument.name}` has no default")
        default = argument.default
        found.append((argument.name, str(default).lower() if isinstance(default, bool) else str(default)))
    return found
