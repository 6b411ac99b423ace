//! Hashes of inputs.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 hash of everything that results depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Hashes these parts in order. A different division into parts results in a different key.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// Formats the key in hexadecimal.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_parts_apart() {
        let keys = [Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]), Key::of(&[b"abc"]), Key::of(&[])];
        for (at, key) in keys.iter().enumerate() {
            assert!(keys[..at].iter().all(|other| other != key));
            assert_eq!(key.to_string().len(), 64);
        }
        assert_eq!(keys[0], Key::of(&[b"ab", b"c"]));
    }
}
