//! A session of QUIC without cryptography: packets have the lengths of real ones, and their content is
//! readable. It spares the simulator a cryptographic library, and runs the time of one.
//!
//! The handshake has the flights of TLS 1.3 and none of its content: a hello of the client, a hello and the
//! rest of the server's flight, and a finish of the client. The lengths are those of a usual handshake.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// The length of the tag of AES-GCM and ChaCha20-Poly1305 (RFC 9001 section 5.3), and of the sample of header
/// protection (section 5.4.2).
const TAG: usize = 16;
/// The content of tags. Not that of reset tokens, which end a packet as well.
const TAG_BYTE: u8 = 0xa5;
/// What TLS adds to transport parameters in the hello of a client: random, key share, extensions.
const CLIENT_HELLO: usize = 250;
/// A server's hello: random, key share.
const SERVER_HELLO: usize = 90;
/// The rest of the server's flight: a certificate chain with its signature, and a finish.
const CERTIFICATE: usize = 2_000;
/// A finish: type, length, HMAC-SHA256.
const FINISHED: usize = 36;

/// The key of everything: none.
pub(crate) struct NoKey;

impl PacketKey for NoKey {
    fn encrypt(&self, _: u64, buf: &mut [u8], _: usize) {
        let start = buf.len().saturating_sub(TAG);
        buf[start..].fill(TAG_BYTE);
    }
    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        let is_own = payload[length..].iter().all(|&byte| byte == TAG_BYTE);
        payload.truncate(length);
        if is_own { Ok(()) } else { Err(CryptoError) }
    }
    fn tag_len(&self) -> usize {
        TAG
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Signatures differ with their data, so that each connection ID has its own reset token (FNV-1a).
impl HmacKey for NoKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (at, byte) in signature.iter_mut().enumerate() {
            for &data in data.iter().chain([&(at as u8)]) {
                hash = (hash ^ u64::from(data)).wrapping_mul(0x0100_0000_01b3);
            }
            *byte = (hash >> 32) as u8;
        }
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; signature.len()];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for NoKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend([TAG_BYTE; TAG]);
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

fn pair<T: ?Sized>(key: fn() -> Box<T>) -> KeyPair<Box<T>> {
    KeyPair { local: key(), remote: key() }
}

fn keys() -> Keys {
    Keys { header: pair(|| Box::new(NoKey)), packet: pair(|| Box::new(NoKey)) }
}

/// The handshake of one end.
struct NullSession {
    side: Side,
    /// Transport parameters in the wire format.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Bytes of the peer's handshake so far.
    read: Vec<u8>,
    step: Step,
}

/// What is next, in the order of each side.
#[derive(Clone, Copy)]
enum Step {
    /// The client writes its hello.
    ClientHello,
    AwaitServerHello,
    /// The client takes the keys of the handshake.
    HandshakeKeys,
    AwaitServerFlight,
    /// The client writes its finish.
    Finish,

    AwaitClientHello,
    /// The server writes its hello.
    ServerHello,
    /// The server writes the rest of its flight.
    ServerFlight,
    AwaitFinish,

    Done,
}

/// A message: its length in four bytes, then transport parameters, then `more` bytes of zeros.
fn message(parameters: &[u8], more: usize, out: &mut Vec<u8>) {
    let length = parameters.len() + more;
    out.extend((length as u32).to_be_bytes());
    out.extend(parameters);
    out.resize(out.len() + more, 0);
}

impl NullSession {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut own = Vec::new();
        parameters.write(&mut own);
        let step = if side.is_client() { Step::ClientHello } else { Step::AwaitClientHello };
        Self { side, own, peer: None, read: Vec::new(), step }
    }

    /// Takes the next message out of what was read, if it is complete.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.read.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let message = rest.get(..length)?.to_vec();
        self.read.drain(..4 + length);
        Some(message)
    }

    /// Reads the peer's transport parameters from a message, which ends with `more` bytes.
    fn read_parameters(&mut self, message: &[u8], more: usize) -> Result<(), TransportError> {
        let mut parameters = &message[..message.len().saturating_sub(more)];
        self.peer = Some(TransportParameters::read(self.side, &mut parameters)?);
        Ok(())
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }
    fn is_handshaking(&self) -> bool {
        !matches!(self.step, Step::Finish | Step::Done)
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.read.extend(buf);
        while let Some(message) = self.next_message() {
            self.step = match self.step {
                Step::AwaitServerHello => Step::HandshakeKeys,
                Step::AwaitServerFlight => {
                    self.read_parameters(&message, CERTIFICATE)?;
                    Step::Finish
                }
                Step::AwaitClientHello => {
                    self.read_parameters(&message, CLIENT_HELLO)?;
                    Step::ServerHello
                }
                Step::AwaitFinish => Step::Done,
                step => step,
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        // Keys follow the message that completes them.
        let (next, has_keys) = match self.step {
            Step::ClientHello => {
                message(&self.own, CLIENT_HELLO, buf);
                (Step::AwaitServerHello, false)
            }
            Step::HandshakeKeys => (Step::AwaitServerFlight, true),
            Step::Finish => {
                message(&[], FINISHED, buf);
                (Step::Done, true)
            }
            Step::ServerHello => {
                message(&[], SERVER_HELLO, buf);
                (Step::ServerFlight, true)
            }
            Step::ServerFlight => {
                message(&self.own, CERTIFICATE, buf);
                (Step::AwaitFinish, true)
            }
            step => (step, false),
        };
        self.step = next;
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(NoKey)))
    }
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn export_keying_material(
        &self,
        output: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

/// Makes sessions of both sides.
pub(crate) struct NullCrypto;

impl crypto::ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession::new(Side::Client, parameters)))
    }
}

impl crypto::ServerConfig for NullCrypto {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; TAG] {
        [TAG_BYTE; TAG]
    }
    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(Side::Server, parameters))
    }
}
