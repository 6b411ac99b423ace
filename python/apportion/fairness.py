"""Fairness indices, and entitlements of flows in a network."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex, TypeGuard, cast

from . import _native

__all__ = ["Flow", "jain", "max_min"]


class Flow(NamedTuple):
    """Demand and weight of a flow for :func:`max_min`. Rates have the unit of the capacities.

    Attributes
    ----------
    path : sequence
        Links of the flow, by their keys in ``capacities``.
    weight : float
        Weight beyond guarantees. Default 1.
    guarantee : float
        Guaranteed rate, up to the demand. Default 0.
    demand : float or None
        Maximum rate. Default None: greedy.
    """

    path: Sequence[Any]
    weight: float = 1.0
    guarantee: float = 0.0
    demand: float | None = None


def jain(shares: Iterable[float]) -> float:
    """Compute Jain's index of fairness.

    Parameters
    ----------
    shares : iterable of float
        Rate of each flow; for weighted flows, divided by its weight.

    Returns
    -------
    float
        (Σx)² / (n Σx²): 1 if all are equal, 1/n if one flow has everything.

    References
    ----------
    Jain, Chiu, Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.

    Examples
    --------
    >>> jain([1, 1, 2])
    0.8888888888888888
    """
    return _native.jain([float(share) for share in shares])


def max_min(
    capacities: float | Sequence[float] | Mapping[Any, float], flows: Iterable[Flow | Sequence[Any] | float | None]
) -> list[float]:
    """Compute the weighted max-min fair rates of flows, with guarantees.

    Parameters
    ----------
    capacities : float, sequence or mapping of float
        The capacity of the only link, or of each link by index or key.
    flows : iterable
        Flows as :class:`Flow`, or as their paths. With a single link also as their demands, where None is a greedy flow.

    Returns
    -------
    list of float
        The rate of each flow. To raise one, another must be lowered whose rate above its guarantee, divided by its weight, is
        no greater.

    Raises
    ------
    ValueError
        If a number is invalid, a greedy flow has no link, or guarantees exceed a capacity.

    References
    ----------
    Bertsekas, Gallager, "Data networks", 1992, section 6.5.2.

    Examples
    --------
    >>> max_min(10, [1, None, None])
    [1.0, 4.5, 4.5]
    >>> max_min({"x": 10, "y": 4}, [["x"], ["x", "y"], Flow(["y"], weight=3)])
    [9.0, 1.0, 3.0]
    """
    if _is_number(capacities):
        keys: list[Any] = [0]
        amounts = [float(capacities)]
        is_single = True
    else:
        several = cast("Sequence[float] | Mapping[Any, float]", capacities)
        pairs = several.items() if isinstance(several, Mapping) else enumerate(several)
        keys, amounts = [], []
        for key, amount in pairs:
            keys.append(key)
            amounts.append(float(amount))
        is_single = False
    places = {key: place for place, key in enumerate(keys)}
    claims: list[tuple[list[int], float, float, float | None]] = []
    for number, given in enumerate(flows):
        flow = _flow(number, given, is_single)
        try:
            links = [places[key] for key in flow.path]
        except KeyError as error:
            raise ValueError(f"flow {number} crosses the link {error.args[0]!r}, which has no capacity") from None
        demand = None if flow.demand is None else float(flow.demand)
        claims.append((links, float(flow.weight), float(flow.guarantee), demand))
    return _native.max_min(amounts, claims)


def _is_number(value: object) -> TypeGuard[SupportsFloat | SupportsIndex]:
    # An array of numpy also has the methods of a number.
    return isinstance(value, (SupportsFloat, SupportsIndex)) and not isinstance(value, Iterable)


def _flow(number: int, given: Flow | Sequence[Any] | float | None, is_single: bool) -> Flow:
    if isinstance(given, Flow):
        return given
    if given is None or _is_number(given):
        if not is_single:
            raise ValueError(f"flow {number} is a demand, which is for a single link; write its path, or a Flow")
        return Flow([0], demand=None if given is None else float(given))
    return Flow([given] if isinstance(given, str) else cast("Sequence[Any]", given))
