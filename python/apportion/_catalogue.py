"""What scenarios can name."""

from typing import NamedTuple

from . import _native


class Entry(NamedTuple):
    """A name that scenarios can use.

    Attributes
    ----------
    name : str
        The name.
    role : str
        What it is, such as ``scheduler``, ``buffer policy`` or ``TCP profile``.
    summary : str
        What it does, in a sentence.
    """

    name: str
    role: str
    summary: str


def names() -> dict[str, list[Entry]]:
    """List everything that scenarios can name, by kind.

    Returns
    -------
    dict of str to list of Entry
        Disciplines, markers and exchanges, TCP profiles and algorithms, sources, topologies.
    """
    return {title: [Entry(*entry) for entry in entries] for title, entries in _native.names()}


def disciplines() -> list[Entry]:
    """List what ``queue`` can name: schedulers, buffer policies, whole systems, shapers, and the isolation of hosts.

    Returns
    -------
    list of Entry
        In the order of ``apportion list``.
    """
    return names()["Disciplines"]


def examples() -> list[str]:
    """List the names of the scenarios that are built in; see :func:`apportion.example`."""
    return _native.example_names()


def experiments() -> list[Entry]:
    """List the experiments of papers that ``apportion reproduce`` runs, with their sources in place of a role."""
    return [Entry(*entry) for entry in _native.experiments()]


class _Text(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def explain(name: str) -> str:
    """Explain a discipline, marker, TCP profile, source or topology.

    Parameters
    ----------
    name : str
        Its name, such as ``"pfd"``.

    Returns
    -------
    str
        What it is, where it comes from, how to write it, its parameters with defaults; a prompt shows it without quotes.

    Raises
    ------
    KeyError
        If nothing has this name; the message suggests the nearest one.
    """
    return _Text(_native.explain(name))
