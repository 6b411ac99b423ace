//! The messages between SF-FC routers, as bytes: a header, then fields of type, length and value.
//!
//! Tamura, Tobe, Tokuda, NOSSDAV 2000, section 3.2 names the messages and gives no format; this one is ours,
//! and `docs/sffc-messages.md` specifies it. All numbers are big-endian.
//!
//! - A reader accepts every minor version of its major version and skips unknown fields.
//! - Lengths must agree to the byte; messages that are too long or cut, and fields that are repeated, are
//!   refused.
//! - With a shared key the last field is an HMAC-SHA-256 (RFC 2104, FIPS 180-4) over everything before it,
//!   cut to 16 bytes (RFC 2104 section 5 allows half of the output). A reader with a key refuses messages
//!   without it.
//!
//! Cost: O(bytes), at most [`MAX_SIZE`] of them; a reader allocates at most as many entries as it got bytes.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use apportion_core::units::{Bytes, Span};

#[cfg(test)]
mod tests;

/// Largest message. Chosen: the 1,280 bytes that every IPv6 link carries (RFC 8200 section 5) minus its
/// header and that of UDP, so that none is fragmented.
pub const MAX_SIZE: usize = 1_280 - 40 - 8;
/// Maximum bytes of the largest entry list of a message: [`MAX_SIZE`] minus the header and every other field.
pub const ROOM: usize = MAX_SIZE - HEADER - 3 * WORD - 2 * LONG - WORD;
/// Longest [`FlowKey`]. Chosen: an IPv6 five-tuple is 37 bytes.
pub const MAX_KEY: usize = 40;

const MAGIC: [u8; 4] = *b"SFFC";
const MAJOR: u8 = 1;
const MINOR: u8 = 0;
const HEADER: usize = 10;
/// Bytes of a field's type and length.
const FIELD: usize = 2;
/// Bytes of a field with eight bytes of value, and with sixteen.
const WORD: usize = FIELD + 8;
const LONG: usize = FIELD + 16;
/// Bytes of an authenticator.
const TAG: usize = 16;

const QUERY: u8 = 1;
const ANSWER: u8 = 2;
const REPORT: u8 = 3;

/// Flag of a query: it travels towards the source of its flow.
const TOWARDS_SOURCE: u8 = 1;

/// Types of fields.
mod field {
    pub const ROUTER: u8 = 1;
    pub const NONCE: u8 = 2;
    pub const COOKIE: u8 = 3;
    pub const SEQUENCE: u8 = 4;
    pub const INTERVAL: u8 = 5;
    pub const FLOW: u8 = 6;
    pub const STATE: u8 = 7;
    pub const AUTHENTICATOR: u8 = 255;
}

/// A router's address, as other routers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterId(pub u128);

/// The name of a flow between routers: opaque bytes from the backend, a five-tuple or a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    len: u8,
    /// Zero from `len` on, so that equal keys are equal bytes.
    bytes: [u8; MAX_KEY],
}

impl FlowKey {
    /// A key of these bytes; none if there are none or more than [`MAX_KEY`].
    #[must_use]
    pub fn from_bytes(key: &[u8]) -> Option<Self> {
        let len = u8::try_from(key.len()).ok().filter(|len| (1..=MAX_KEY as u8).contains(len))?;
        let mut bytes = [0; MAX_KEY];
        bytes[..key.len()].copy_from_slice(key);
        Some(Self { len, bytes })
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({:02x?})", self.as_bytes())
    }
}

/// Proof that a message comes from a router that was answered, and is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The cookie of the answer.
    pub cookie: u64,
    /// A number that grows with each message of a router.
    pub sequence: u64,
}

/// The routers that a query asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The routers one hop away; they do not forward it.
    Neighbours,
    /// The first SF-FC router on the way to the source that carries the flow; the others forward it.
    TowardsSource,
}

/// "Which router do these flows come from?" The neighbour discovery packet of section 3.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The router that asks.
    pub router: RouterId,
    /// A nonce, which the answer repeats.
    pub nonce: u64,
    /// The routers that it asks.
    pub scope: Scope,
    /// The proof of a router that was answered before and asks for a new cookie.
    pub proof: Option<Proof>,
    /// The flows: at least one; exactly one if it travels towards the source.
    pub flows: Vec<FlowKey>,
}

/// "From me."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The router that answers.
    pub router: RouterId,
    /// The nonce of the query.
    pub nonce: u64,
    /// The cookie for reports about these flows.
    pub cookie: u64,
    /// The flows of the query that the router sends to the asker; at least one.
    pub flows: Vec<FlowKey>,
}

/// The traffic of a flow on a link in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowState {
    pub key: FlowKey,
    /// Arrivals in the interval, the paper's lambda.
    pub arrived: Bytes,
    /// Departures in the interval, the paper's mu.
    pub departed: Bytes,
}

/// "My output link overflowed, and this is the traffic of your flows on it."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub router: RouterId,
    /// The proof, with the cookie of the answer.
    pub proof: Proof,
    /// The interval in which the bytes were counted.
    pub interval: Span,
    /// The flows; at least one.
    pub flows: Vec<FlowState>,
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks for the upstream router of flows.
    Query(Query),
    /// Answers a query.
    Answer(Answer),
    /// Reports the traffic of flows.
    Report(Report),
}

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// There are fewer bytes than the header declares.
    Truncated,
    /// There are more bytes than the header declares, or than any message may have.
    TooLong,
    /// The bytes are not of this protocol.
    Magic,
    /// The major version differs.
    Version,
    /// The type of message does not exist.
    Type,
    /// A field reaches beyond the end, or its length does not match its type.
    FieldLength,
    /// A field that may appear once appears twice.
    Duplicate,
    /// A field is missing that this type requires, or a query towards a source asks for several flows.
    Missing,
    /// There is a key, but no authenticator at the end.
    Unauthenticated,
    /// The authenticator does not match the message and the key.
    Forged,
}

impl DecodeError {
    /// All errors, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Truncated,
        Self::TooLong,
        Self::Magic,
        Self::Version,
        Self::Type,
        Self::FieldLength,
        Self::Duplicate,
        Self::Missing,
        Self::Unauthenticated,
        Self::Forged,
    ];

    /// The error's name in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "refused_truncated",
            Self::TooLong => "refused_too_long",
            Self::Magic => "refused_magic",
            Self::Version => "refused_version",
            Self::Type => "refused_type",
            Self::FieldLength => "refused_field_length",
            Self::Duplicate => "refused_duplicate",
            Self::Missing => "refused_missing",
            Self::Unauthenticated => "refused_unauthenticated",
            Self::Forged => "refused_forged",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the message is shorter than it says",
            Self::TooLong => "the message is longer than it says or than a message may be",
            Self::Magic => "the protocol identifier is another",
            Self::Version => "the major version is another",
            Self::Type => "the type of message is unknown",
            Self::FieldLength => "a field has a wrong length",
            Self::Duplicate => "a field is there twice",
            Self::Missing => "a field that the message needs is missing",
            Self::Unauthenticated => "the authenticator is missing",
            Self::Forged => "the authenticator is wrong",
        })
    }
}
impl core::error::Error for DecodeError {}

/// A key that routers share.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A key of these bytes, which should be 32 random ones.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        // RFC 2104 section 2: a key longer than a block is hashed, a shorter one is padded with zeros.
        let mut block = [0; 64];
        if key.len() > block.len() {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        Self(Hmac::new(&block.into()))
    }

    /// HMAC-SHA-256 of these bytes.
    pub(super) fn authenticate(&self, bytes: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(bytes).finalize().into_bytes().into()
    }

    /// Compares in a time that does not depend on where the bytes differ.
    fn verifies(&self, bytes: &[u8], tag: &[u8]) -> bool {
        self.0.clone().chain_update(bytes).verify_truncated_left(tag).is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

// ---------------------------------------------------------------------------------------------
// Writing

/// Bytes of a flow in a query or an answer.
#[must_use]
pub fn flow_size(key: &FlowKey) -> usize {
    FIELD + key.as_bytes().len()
}

/// Bytes of a flow in a report.
#[must_use]
pub fn state_size(state: &FlowState) -> usize {
    FIELD + 16 + state.key.as_bytes().len()
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8, flags: u8, router: RouterId) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&MAGIC);
        // The length follows when it is known.
        bytes.extend_from_slice(&[MAJOR, MINOR, kind, flags, 0, 0]);
        Self(bytes).field(field::ROUTER, &router.0.to_be_bytes(), &[])
    }

    /// A field whose value consists of these two pieces, which are short.
    fn field(mut self, kind: u8, value: &[u8], more: &[u8]) -> Self {
        self.0.extend_from_slice(&[kind, (value.len() + more.len()) as u8]);
        self.0.extend_from_slice(value);
        self.0.extend_from_slice(more);
        self
    }

    fn word(self, kind: u8, value: u64) -> Self {
        self.field(kind, &value.to_be_bytes(), &[])
    }

    fn proof(self, proof: Proof) -> Self {
        self.word(field::COOKIE, proof.cookie).word(field::SEQUENCE, proof.sequence)
    }

    fn flows(self, flows: &[FlowKey]) -> Self {
        flows.iter().fold(self, |writer, flow| writer.field(field::FLOW, flow.as_bytes(), &[]))
    }

    fn state(self, state: &FlowState) -> Self {
        let mut counts = [0; 16];
        counts[..8].copy_from_slice(&state.arrived.get().to_be_bytes());
        counts[8..].copy_from_slice(&state.departed.get().to_be_bytes());
        self.field(field::STATE, &counts, state.key.as_bytes())
    }

    fn finish(mut self, key: Option<&Key>) -> Option<Vec<u8>> {
        let total = self.0.len() + key.map_or(0, |_| FIELD + TAG);
        let length = u16::try_from(total).ok().filter(|_| total <= MAX_SIZE)?;
        self.0[HEADER - 2..HEADER].copy_from_slice(&length.to_be_bytes());
        if let Some(key) = key {
            let tag = key.authenticate(&self.0);
            self = self.field(field::AUTHENTICATOR, &tag[..TAG], &[]);
        }
        Some(self.0)
    }
}

impl Message {
    /// The sender.
    #[must_use]
    pub const fn sender(&self) -> RouterId {
        match self {
            Self::Query(query) => query.router,
            Self::Answer(answer) => answer.router,
            Self::Report(report) => report.router,
        }
    }

    /// The message as bytes; none if it is larger than [`MAX_SIZE`], which cannot happen with at most
    /// [`ROOM`] bytes of flows.
    #[must_use]
    pub fn encode(&self, key: Option<&Key>) -> Option<Vec<u8>> {
        let writer = match self {
            Self::Query(query) => {
                let flags = if query.scope == Scope::TowardsSource { TOWARDS_SOURCE } else { 0 };
                let writer = Writer::new(QUERY, flags, query.router).word(field::NONCE, query.nonce);
                let writer = match query.proof {
                    Some(proof) => writer.proof(proof),
                    None => writer,
                };
                writer.flows(&query.flows)
            }
            Self::Answer(answer) => Writer::new(ANSWER, 0, answer.router)
                .word(field::NONCE, answer.nonce)
                .word(field::COOKIE, answer.cookie)
                .flows(&answer.flows),
            Self::Report(report) => {
                let writer = Writer::new(REPORT, 0, report.router)
                    .proof(report.proof)
                    .word(field::INTERVAL, report.interval.as_nanos());
                report.flows.iter().fold(writer, Writer::state)
            }
        };
        writer.finish(key)
    }

    /// Parses a message. With a key, only messages with its authenticator pass.
    ///
    /// # Errors
    /// The first error, if the bytes are no message of this protocol.
    pub fn decode(bytes: &[u8], key: Option<&Key>) -> Result<Self, DecodeError> {
        let (kind, flags) = header(bytes)?;
        if let Some(key) = key {
            let (content, tag) = bytes.split_at(bytes.len().saturating_sub(TAG));
            if content.len() < HEADER + FIELD || !content.ends_with(&[field::AUTHENTICATOR, TAG as u8]) {
                return Err(DecodeError::Unauthenticated);
            }
            if !key.verifies(&content[..content.len() - FIELD], tag) {
                return Err(DecodeError::Forged);
            }
        }
        Fields::read(&bytes[HEADER..])?.message(kind, flags).ok_or(DecodeError::Missing)
    }
}

// ---------------------------------------------------------------------------------------------
// Reading

/// Checks the header and returns the type and the flags.
fn header(bytes: &[u8]) -> Result<(u8, u8), DecodeError> {
    let Some(&[m0, m1, m2, m3, major, _, kind, flags, high, low]) = bytes.first_chunk::<HEADER>() else {
        return Err(DecodeError::Truncated);
    };
    if [m0, m1, m2, m3] != MAGIC {
        return Err(DecodeError::Magic);
    }
    if major != MAJOR {
        return Err(DecodeError::Version);
    }
    let total = usize::from(u16::from_be_bytes([high, low]));
    if bytes.len() < total {
        return Err(DecodeError::Truncated);
    }
    if bytes.len() > total || total > MAX_SIZE {
        return Err(DecodeError::TooLong);
    }
    if !(QUERY..=REPORT).contains(&kind) {
        return Err(DecodeError::Type);
    }
    Ok((kind, flags))
}

/// Whether bytes begin like messages of this protocol, of any version and type.
#[must_use]
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Whether bytes begin like a query on its way to a source, which every router on the way checks. The rest is
/// not read.
#[must_use]
pub fn is_towards_source(bytes: &[u8]) -> bool {
    matches!(header(bytes), Ok((QUERY, flags)) if flags & TOWARDS_SOURCE != 0)
}

/// The fields that were present. Fields that a type does not use are ignored.
#[derive(Default)]
struct Fields {
    router: Option<[u8; 16]>,
    nonce: Option<[u8; 8]>,
    cookie: Option<[u8; 8]>,
    sequence: Option<[u8; 8]>,
    interval: Option<[u8; 8]>,
    flows: Vec<FlowKey>,
    states: Vec<FlowState>,
}

impl Fields {
    fn read(mut rest: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Self::default();
        while let [kind, length, behind @ ..] = rest {
            let (value, next) =
                behind.split_at_checked(usize::from(*length)).ok_or(DecodeError::FieldLength)?;
            fields.take(*kind, value)?;
            rest = next;
        }
        if rest.is_empty() { Ok(fields) } else { Err(DecodeError::FieldLength) }
    }

    fn take(&mut self, kind: u8, value: &[u8]) -> Result<(), DecodeError> {
        match kind {
            field::ROUTER => once(&mut self.router, value)?,
            field::NONCE => once(&mut self.nonce, value)?,
            field::COOKIE => once(&mut self.cookie, value)?,
            field::SEQUENCE => once(&mut self.sequence, value)?,
            field::INTERVAL => once(&mut self.interval, value)?,
            field::FLOW => self.flows.push(FlowKey::from_bytes(value).ok_or(DecodeError::FieldLength)?),
            field::STATE => self.states.push(state(value).ok_or(DecodeError::FieldLength)?),
            // If there is a key, the authenticator was checked before.
            _ => {}
        }
        Ok(())
    }

    fn proof(&self) -> Option<Proof> {
        Some(Proof { cookie: u64::from_be_bytes(self.cookie?), sequence: u64::from_be_bytes(self.sequence?) })
    }

    /// The message of this type; none if a field is missing.
    fn message(self, kind: u8, flags: u8) -> Option<Message> {
        let router = RouterId(u128::from_be_bytes(self.router?));
        let nonce = self.nonce.map(u64::from_be_bytes);
        let towards_source = flags & TOWARDS_SOURCE != 0;
        let scope = if towards_source { Scope::TowardsSource } else { Scope::Neighbours };
        let proof = self.proof();
        match kind {
            QUERY if self.flows.is_empty() || towards_source && self.flows.len() > 1 => None,
            QUERY => Some(Message::Query(Query { router, nonce: nonce?, scope, proof, flows: self.flows })),
            ANSWER if self.flows.is_empty() => None,
            ANSWER => {
                let cookie = u64::from_be_bytes(self.cookie?);
                Some(Message::Answer(Answer { router, nonce: nonce?, cookie, flows: self.flows }))
            }
            _ if self.states.is_empty() => None,
            _ => {
                let interval = Span::from_nanos(u64::from_be_bytes(self.interval?));
                Some(Message::Report(Report { router, proof: proof?, interval, flows: self.states }))
            }
        }
    }
}

fn once<const N: usize>(place: &mut Option<[u8; N]>, value: &[u8]) -> Result<(), DecodeError> {
    let value = value.try_into().map_err(|_| DecodeError::FieldLength)?;
    if place.replace(value).is_some() { Err(DecodeError::Duplicate) } else { Ok(()) }
}

fn state(value: &[u8]) -> Option<FlowState> {
    let (arrived, value) = value.split_first_chunk()?;
    let (departed, key) = value.split_first_chunk()?;
    Some(FlowState {
        key: FlowKey::from_bytes(key)?,
        arrived: Bytes::new(u64::from_be_bytes(*arrived)),
        departed: Bytes::new(u64::from_be_bytes(*departed)),
    })
}
