//! Exit statuses, as numbers: the command is also called from a program that has its own way to exit.

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// It did what it was asked for.
    pub const SUCCESS: Self = Self(0);
    /// It did, and the answer is no; or it was interrupted.
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
