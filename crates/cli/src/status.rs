//! Exit statuses as numbers: the command is also called from a program that exits in its own way.

/// Exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// The command did what it was asked for.
    pub const SUCCESS: Self = Self(0);
    /// The command ran and its answer is no, or it was interrupted.
    pub const FAILURE: Self = Self(1);
}

impl From<u8> for Status {
    fn from(number: u8) -> Self {
        Self(number)
    }
}

impl From<Status> for u8 {
    fn from(status: Status) -> Self {
        status.0
    }
}
