//! The token that changes need, and the answers to wrong ones.
//!
//! The right token always passes: a guesser, which may be any local user, cannot lock the operator out of a
//! gateway. So only the number of requests limits guesses, and the token itself has to be hard to guess. A
//! file with fewer than 16 characters is refused; whether they are random cannot be checked. The weakest
//! random token that passes, of 16 hexadecimal digits, has 64 bits: at 100,000 requests a second, more than
//! the thread can answer, a year of guesses finds it with a probability of 2·10⁻⁷.
//!
//! Tokens are compared by all bytes of their SHA-256 digests: the time of a comparison reveals neither the
//! token nor its length. Characters are those of RFC 6750 section 2.1.

use std::fmt;
use std::hint::black_box;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use apportion_core::units::{Span, Time};
use sha2::{Digest as _, Sha256};

use super::ControlError;

/// Fewest and most characters of a token. 16 random letters and digits make 10^28 tokens, as many hexadecimal
/// digits 10^19.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;
/// Maximum bytes of a token's file, which may end with blanks and a newline.
const MAX_FILE: u64 = 1_024;
/// Wrong tokens in a row that are answered, and logged, as such. Chosen: a person mistypes a few times.
const TRIES: u32 = 10;
/// Time after which one more is answered as such.
const TRY_AGAIN: Span = Span::from_secs(6);

/// The digest of a token; its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Reads the file of a token.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or the token is invalid, with how to mend it. The message
    /// does not contain the token.
    pub fn read(path: &Path) -> Result<Self, ControlError> {
        const MAKE: &str = "openssl rand -hex 32";
        let place = path.display();
        let fail = |why: String| ControlError::Token(format!("control_token: {place}: {why}"));
        let file = apportion_scenario::open_file(path, MAX_FILE);
        let mut file = file.map_err(|error| {
            fail(format!("cannot read it: {error}; make it with `umask 077; {MAKE} > {place}`"))
        })?;
        let mode = file.get_ref().metadata().map_err(|error| fail(error.to_string()))?.mode();
        if mode & 0o027 != 0 {
            let message = format!(
                "its mode is {:03o}, so that other users can read or change it; write chmod 600 {place}",
                mode & 0o777
            );
            return Err(fail(message));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| fail(format!("{error}; write the output of `{MAKE}`")))?;
        let token = text.trim_end();
        if !LENGTHS.contains(&token.len()) {
            let (least, most) = (LENGTHS.start(), LENGTHS.end());
            let message =
                format!("{} characters; write {least} to {most}, for example by `{MAKE}`", token.len());
            return Err(fail(message));
        }
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
            return Err(fail(format!(
                "only letters, digits and -._~+/= go into a token; write the output of `{MAKE}`"
            )));
        }
        Ok(Self::of(token))
    }

    fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Whether `token` is this one.
    fn is(&self, token: &str) -> bool {
        let other = Self::of(token);
        let differing =
            self.0.iter().zip(&other.0).fold(0, |all, (own, other)| black_box(all | (own ^ other)));
        differing == 0
    }
}

/// Why a request may not change settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The request has no token.
    Absent,
    /// The request has a wrong token.
    Wrong,
    /// The request has a wrong token, after too many others.
    TooMany,
}

/// Checks tokens. The right one always passes. [`TRIES`] wrong ones in a row are answered as such, and then
/// one each [`TRY_AGAIN`], counted over all clients; more are too many.
#[derive(Debug)]
pub struct Guard {
    tries: u32,
    /// Time at which a try was last given back.
    since: Time,
}

impl Default for Guard {
    fn default() -> Self {
        Self { tries: TRIES, since: Time::ZERO }
    }
}

impl Guard {
    /// Checks the token in `Authorization` (RFC 6750 section 2.1).
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check(&mut self, now: Time, token: &Token, authorization: Option<&str>) -> Result<(), Denied> {
        let said = authorization.and_then(|value| value.split_once(' '));
        let Some((_, said)) = said.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return Err(Denied::Absent);
        };
        // First, however many were wrong: otherwise a guesser could lock the operator out.
        if token.is(said.trim()) {
            return Ok(());
        }
        let back = now.since(self.since).as_nanos() / TRY_AGAIN.as_nanos();
        if back > 0 {
            self.tries = TRIES.min(self.tries.saturating_add(u32::try_from(back).unwrap_or(TRIES)));
            self.since = now;
        }
        if self.tries == 0 {
            return Err(Denied::TooMany);
        }
        if self.tries == TRIES {
            self.since = now;
        }
        self.tries -= 1;
        Err(Denied::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_that_is_short_odd_or_open_to_others_is_refused_with_the_mend() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &[u8], mode| {
            // A file that is read-only cannot be written again.
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path).map_err(|error| error.to_string())
        };
        let place = path.display();
        assert!(Token::read(&path).unwrap_err().to_string().contains("cannot read it: No such file"));
        assert!(Token::read(folder.path()).unwrap_err().to_string().starts_with("control_token: "));
        let good = b"0123456789abcdef\n";
        for mode in [0o600, 0o400, 0o640] {
            assert_eq!(read(good, mode), Ok(Token::of("0123456789abcdef")), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o602, 0o620] {
            let said = read(good, mode).unwrap_err();
            assert!(said.ends_with(&format!("write chmod 600 {place}")), "{mode:o} {said}");
        }
        for (text, expected) in [
            (
                &b"0123456789abcde\n"[..],
                "15 characters; write 16 to 256, for example by `openssl rand -hex 32`",
            ),
            (b"", "0 characters;"),
            (&[b'x'; 257], "257 characters;"),
            (b"0123456789 abcdef", "only letters, digits and"),
            (&[0xff; 20], "write the output of `openssl"),
        ] {
            let said = read(text, 0o600).unwrap_err();
            assert!(said.contains(expected) && !said.contains("abcde"), "{said}");
        }
        assert!(read(&[b'x'; 2_000], 0o600).unwrap_err().contains("longer than"));
    }

    #[test]
    fn the_right_token_passes_however_many_wrong_ones_come() {
        let (token, mut guard) = (Token::of("the right one"), Guard::default());
        let mut at = |seconds, said| guard.check(Time::from_secs(seconds), &token, said);
        assert_eq!(at(100, Some("Bearer the right one")), Ok(()));
        assert_eq!(at(100, Some("bearer  the right one")), Ok(()));
        for said in [None, Some("Basic the right one"), Some("Bearer")] {
            (0..100).for_each(|_| assert_eq!(at(100, said), Err(Denied::Absent)));
        }
        for said in ["Bearer the right on", "Bearer the right one!", "Bearer ", "Bearer x"] {
            assert_eq!(at(100, Some(said)), Err(Denied::Wrong), "{said}");
        }
        // The right token does not count as a wrong one, and does not make up for any.
        (0..6).for_each(|_| {
            assert_eq!(at(100, Some("Bearer the right one")), Ok(()));
            assert_eq!(at(100, Some("Bearer x")), Err(Denied::Wrong));
        });
        for _ in 0..1_000 {
            assert_eq!(at(105, Some("Bearer x")), Err(Denied::TooMany));
            assert_eq!(at(105, Some("Bearer the right one")), Ok(()));
        }
        assert_eq!(at(106, Some("Bearer x")), Err(Denied::Wrong));
        assert_eq!(at(107, Some("Bearer x")), Err(Denied::TooMany));
        assert_eq!(at(107, Some("Bearer the right one")), Ok(()));
        let wrong = (200..800).filter(|&second| at(second, Some("Bearer x")) == Err(Denied::Wrong)).count();
        assert!((100..=112).contains(&wrong), "{wrong}");
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
