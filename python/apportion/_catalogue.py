"""Names for scenarios."""

from typing import NamedTuple

from . import _native


class Entry(NamedTuple):
    """A name that scenarios can use.

    Attributes
    ----------
    name : str
        The name.
    role : str
        Its role, for example ``scheduler``, ``buffer policy`` or ``TCP profile``.
    summary : str
        Its effect, in a sentence.
    """

    name: str
    role: str
    summary: str


def names() -> dict[str, list[Entry]]:
    """List all names for scenarios, by kind.

    Returns
    -------
    dict of str to list of Entry
        Disciplines, markers and exchanges, TCP profiles and algorithms, sources, topologies.
    """
    return {title: [Entry(*entry) for entry in entries] for title, entries in _native.names()}


def disciplines() -> list[Entry]:
    """List the disciplines for ``queue``: schedulers, buffer policies, whole systems, shapers, and the isolation of hosts.

    Returns
    -------
    list of Entry
        In the order of ``apportion list``.
    """
    return names()["Disciplines"]


def examples() -> list[str]:
    """List the names of the built-in scenarios; see :func:`apportion.example`."""
    return _native.example_names()


def experiments() -> list[Entry]:
    """List the experiments of papers that ``apportion reproduce`` runs, with their sources in place of a role."""
    return [Entry(*entry) for entry in _native.experiments()]


class _Text(str):
    """Text that a prompt shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def explain(name: str) -> str:
    """Explain a discipline, marker, TCP profile, source or topology.

    Parameters
    ----------
    name : str
        Its name, for example ``"pfd"``.

    Returns
    -------
    str
        A description, the source, the notation, and the parameters with defaults; a prompt shows it without quotes.

    Raises
    ------
    KeyError
        If nothing has this name; the message suggests the nearest one.
    """
    return _Text(_native.explain(name))
