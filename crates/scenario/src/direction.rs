//! The two directions of a link between an inside and an outside: of a gateway, and of a shell.

/// A direction. As a number, `Up` is 0 and `Down` is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the inside to the outside; in a shell from the command to the far end.
    Up,
    /// The opposite of up.
    Down,
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// The direction's name in configuration files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The opposite direction.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}
