//! quinn, QUIC in Rust: the crate `quinn-proto` 0.11.19, unmodified.
//!
//! Each end is an endpoint of quinn with one connection. The source opens it and writes to unidirectional
//! streams; with [`request`](QuinnParams::request) the sink opens it, asks on bidirectional streams, and the
//! source answers. Applications read and write as fast as they can.
//!
//! # Settings that differ from quinn's defaults
//!
//! | setting | value | why |
//! |---|---|---|
//! | seeds, connection IDs, reset key, clock of tokens | from the run's seed | a run can be repeated byte for byte |
//! | cryptography | `null_session`: none, packets of the same length | no library, and less time |
//! | `initial_mtu`, `min_mtu`, MTU discovery | 1452 bytes, 1452 bytes, off | what discovery finds on an Ethernet |
//! | `send_window` | twice the congestion window, at least 64 kB | what is written and not sent when a source stops is sent later |
//! | `max_idle_timeout` | none | a source may pause |
//! | validation tokens | none | the default depends on how quinn is compiled |
//! | segmentation offload | off | a packet of the network is a datagram |
//!
//! Cost: some 2 µs per packet, and 90 kB per connection.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use apportion_core::packet::Ecn;
use apportion_core::param::{Entry, EntryArgs, Param, ParamError, Range, Role, Traits};
use apportion_core::random::Stream;
use apportion_core::stack::{Command, Counts, Datagram, Endpoint, Ends, Progress, Sizes, Stack};
use apportion_core::units::{Bytes, Span, Time};
use bytes::BytesMut;
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TimeSource, TransportConfig,
    ValidationTokenConfig, VarInt,
};

use crate::null_session::{NoKey, NullCrypto};

/// The description of the stack.
pub static ENTRY: Entry = Entry {
    name: "quinn",
    role: Role::Stack,
    summary: "quinn, an implementation of QUIC in Rust, unmodified, without cryptography.",
    reference: "quinn-proto 0.11.19, https://github.com/quinn-rs/quinn",
    cost: "some 2 µs per packet, 90 kB per connection",
    params: QuinnParams::PARAMS,
    traits: Traits::NONE,
};

apportion_core::params! {
    /// The parameters of quinn that scenarios can set.
    pub struct QuinnParams {
        /// The congestion control, as quinn has it. Its BBR is experimental and ignores marks.
        congestion: &'static str = Param::of("cubic", "quinn's default").one_of(&["cubic", "newreno", "bbr"]),
        /// Number of streams among which the data are divided.
        streams: u32 = Param::of("1", "chosen").within(Range::UpTo(1_000)),
        /// Size of a request. With it the sink opens the connection, requests on each stream, and the source sends when it has the request; if not set, the source opens the connection and sends.
        request: Option<Bytes> = Param::unset("chosen"),
        /// What the receiver lets the sender send beyond what was read, on each stream and in sum; if not set, 1.25 MB for each stream, which is 100 Mb/s with a round trip of 100 ms.
        window: Option<Bytes> = Param::unset("quinn's default: 1.25 MB for each stream"),
        /// Whether the host has ECN. quinn then sends ECT(0) until its validation fails.
        ecn: bool = Param::of("true", "quinn's default"),
    }
    check: |params: &Self, _| {
        let refuse = |key, message| Err(ParamError::new(key, message));
        match params {
            Self { request: Some(Bytes::ZERO), .. } => {
                refuse("request", "a request has at least one byte; write for example \"300B\"")
            }
            Self { request: Some(size), .. } if size.get() > MAX_REQUEST => {
                refuse("request", "a request has at most 1 MB; write for example \"300B\"")
            }
            Self { window: Some(size), .. } if !(MIN_WINDOW..=MAX_WINDOW).contains(&size.get()) => {
                refuse("window", "the window is between 4 kB and 1000 MB; write for example \"10MB\"")
            }
            _ => Ok(()),
        }
    }
}

const MAX_REQUEST: u64 = 1_000_000;
const MIN_WINDOW: u64 = 4_000;
const MAX_WINDOW: u64 = 1_000_000_000;
/// A UDP payload: an Ethernet's 1500 bytes without the headers of IPv6 and UDP, as quinn's discovery finds it.
const MTU: u16 = 1_452;
/// Headers of IPv4 and UDP.
const HEADERS: u16 = 28;
/// A packet of data: short header 1, connection ID 8, packet number 2, STREAM frame 8, tag 16.
const OVERHEAD: u16 = 35;
/// A usual packet that acknowledges: short header 1, connection ID 8, packet number 2, ACK frame of two
/// ranges with counts of ECN 16, tag 16.
const ACK: u16 = 43;
const CID: usize = 8;
/// The least that an application writes ahead of what is acknowledged. Chosen: more than an initial window.
const LEAST_AHEAD: u64 = 65_536;
/// Data of streams: no byte of them is looked at.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// quinn with its parameters.
#[derive(Debug)]
pub struct Quinn(QuinnParams);

impl Quinn {
    /// Reads the parameters.
    ///
    /// # Errors
    /// When quinn cannot run with them.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        QuinnParams::from_args(args).map(Self)
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(MTU)
            .min_mtu(MTU)
            .mtu_discovery_config(None)
            .max_idle_timeout(None)
            .enable_segmentation_offload(false)
            .max_concurrent_bidi_streams(self.0.streams.into())
            .max_concurrent_uni_streams(self.0.streams.into());
        match self.0.congestion {
            "newreno" => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
            "bbr" => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
            _ => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        };
        if let Some(window) = self.0.window {
            let size = VarInt::try_from(window.get()).unwrap_or(VarInt::MAX);
            transport.stream_receive_window(size).receive_window(size);
        }
        Arc::new(transport)
    }

    /// One end; `is_client`: it opens the connection.
    fn end(&self, seed: u64, is_source: bool, is_client: bool) -> End {
        let mut random = Stream::new(seed, "quinn");
        let mut bytes = [0; 32];
        bytes
            .chunks_exact_mut(8)
            .for_each(|part| part.copy_from_slice(&random.below(u64::MAX).to_le_bytes()));
        let first = random.below(u64::MAX);
        let mut config = EndpointConfig::new(Arc::new(NoKey));
        config.rng_seed(Some(bytes)).cid_generator(move || Box::new(Counter(first)));
        let server = (!is_client).then(|| {
            let mut server = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NoKey));
            let mut tokens = ValidationTokenConfig::default();
            tokens.sent(0);
            server
                .transport_config(self.transport())
                .time_source(Arc::new(Epoch))
                .validation_token_config(tokens);
            Arc::new(server)
        });
        let client = is_client.then(|| {
            let mut client = ClientConfig::new(Arc::new(NullCrypto));
            let first = random.below(u64::MAX);
            client
                .transport_config(self.transport())
                .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first.to_be_bytes())));
            client
        });
        End {
            #[expect(clippy::disallowed_methods, reason = "an arbitrary origin: only differences are used")]
            base: Instant::now(),
            endpoint: quinn_proto::Endpoint::new(Arc::new(config), server, false, None),
            client,
            connection: None,
            responses: VecDeque::new(),
            app: App {
                is_source,
                request: self.0.request.filter(|_| is_client).map_or(0, Bytes::get),
                piece: (ZEROS.len() as u64 / u64::from(self.0.streams)).max((MTU - OVERHEAD).into()),
                answers: !is_client && is_source,
                streams: self.0.streams,
                ..App::default()
            },
            has_ecn: self.0.ecn,
        }
    }
}

impl Stack for Quinn {
    fn sizes(&self) -> Sizes {
        let [packet, payload, ack] =
            [MTU + HEADERS, MTU - OVERHEAD, ACK + HEADERS].map(|size| Bytes::new(size.into()));
        Sizes { packet, payload, ack, memory: Bytes::new(90_000) }
    }
    fn counts(&self) -> Counts {
        Counts { timeouts: false, lost: true, reductions: true }
    }
    fn offers_ecn(&self) -> bool {
        self.0.ecn
    }
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2] {
        let sink_opens = self.0.request.is_some();
        [
            Box::new(self.end(ends.seeds[0], true, !sink_opens)),
            Box::new(self.end(ends.seeds[1], false, sink_opens)),
        ]
    }
}

/// Connection IDs in sequence.
#[derive(Debug)]
struct Counter(u64);

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 = self.0.wrapping_add(1);
        ConnectionId::new(&self.0.to_be_bytes())
    }
    fn cid_len(&self) -> usize {
        CID
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The clock of tokens, which no connection here has: always the epoch.
struct Epoch;

impl TimeSource for Epoch {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// One end of a connection.
struct End {
    /// The time zero of the run on quinn's clock.
    base: Instant,
    endpoint: quinn_proto::Endpoint,
    /// The configuration of the end that opens the connection, until it does.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Datagrams of the endpoint, outside a connection.
    responses: VecDeque<Vec<u8>>,
    app: App,
    has_ecn: bool,
}

/// The application at one end.
#[derive(Debug, Default)]
struct App {
    is_source: bool,
    /// The size of a request that it sends; zero if none.
    request: u64,
    /// Whether it sends on the streams on which requests came.
    answers: bool,
    streams: u32,
    /// The most that is written to a stream at a time.
    piece: u64,
    /// Streams with the bytes of their requests that are not written yet.
    asks: VecDeque<(StreamId, u64)>,
    /// Streams that may be written, the next one first.
    writable: VecDeque<StreamId>,
    /// The number of streams whose data and end have been acknowledged.
    finished: u32,
    /// Bytes that are supplied and not written.
    left: u64,
    is_closed: bool,
    has_closed_streams: bool,
    delivered: u64,
    /// Why the connection was lost.
    failure: Option<String>,
}

impl App {
    /// Handles an event of the connection.
    fn on_event(&mut self, event: &Event, connection: &mut Connection) {
        match event {
            Event::Connected => self.open(connection),
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(*dir) {
                    self.read(id, connection);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(*id, connection),
            Event::Stream(StreamEvent::Finished { .. }) => self.finished += 1,
            Event::ConnectionLost { reason } => self.failure = Some(reason.to_string()),
            // What was blocked is tried again after each event.
            _ => (),
        }
    }

    /// The end that opened the connection opens its streams.
    fn open(&mut self, connection: &mut Connection) {
        if connection.side().is_server() {
            return;
        }
        let dir = if self.request > 0 { Dir::Bi } else { Dir::Uni };
        for _ in 0..self.streams {
            let Some(id) = connection.streams().open(dir) else { break };
            if self.request > 0 {
                self.asks.push_back((id, self.request));
            } else {
                self.writable.push_back(id);
            }
        }
    }

    /// Reads all that has arrived in order on a stream.
    fn read(&mut self, id: StreamId, connection: &mut Connection) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut is_whole = false;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.delivered += chunk.bytes.len() as u64,
                Ok(None) => {
                    is_whole = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
        if is_whole && self.answers {
            self.writable.push_back(id);
        }
    }

    /// Writes requests as far as quinn takes them, and ends their streams.
    fn ask(&mut self, connection: &mut Connection) {
        while let Some((id, left)) = self.asks.front_mut() {
            let part = (*left).min(ZEROS.len() as u64);
            let mut stream = connection.send_stream(*id);
            let written = stream.write(&ZEROS[..part as usize]).unwrap_or(0);
            *left -= written as u64;
            if *left == 0 {
                let _ = stream.finish();
                self.asks.pop_front();
            } else if written == 0 {
                break;
            }
        }
    }

    /// Writes as much as quinn takes, in turn to each stream; after the last byte, ends them.
    fn write(&mut self, connection: &mut Connection) {
        // Data are written when they can soon be sent.
        let window = connection.congestion_state().window();
        connection.set_send_window(window.saturating_mul(2).max(LEAST_AHEAD));
        let mut blocked = 0;
        while self.left > 0 && blocked < self.writable.len() {
            let Some(id) = self.writable.pop_front() else { break };
            let part = self.left.min(self.piece);
            let chunk = bytes::Bytes::from_static(&ZEROS[..part as usize]);
            match connection.send_stream(id).write_chunks(&mut [chunk]) {
                Ok(written) if written.bytes > 0 => {
                    self.left -= if self.left == u64::MAX { 0 } else { written.bytes as u64 };
                    blocked = 0;
                }
                _ => blocked += 1,
            }
            self.writable.push_back(id);
        }
        let has_all = self.writable.len() == self.streams as usize;
        if self.left == 0 && self.is_closed && has_all && !self.has_closed_streams {
            self.has_closed_streams = true;
            for &id in &self.writable {
                let _ = connection.send_stream(id).finish();
            }
        }
    }
}

impl End {
    fn instant(&self, now: Time) -> Instant {
        self.base + Duration::from_nanos(now.as_nanos())
    }

    /// The address of this end, or of the other one.
    fn address(is_source: bool) -> SocketAddr {
        (Ipv4Addr::new(10, 0, 0, if is_source { 1 } else { 2 }), 4_433).into()
    }

    /// Passes events between quinn's parts and the application until there are none.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        loop {
            let mut is_quiet = true;
            while let Some(event) = connection.poll_endpoint_events() {
                is_quiet = false;
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            while let Some(event) = connection.poll() {
                is_quiet = false;
                self.app.on_event(&event, connection);
            }
            self.app.ask(connection);
            if self.app.is_source {
                self.app.write(connection);
            }
            if is_quiet {
                break;
            }
        }
    }
}

impl Endpoint for End {
    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Start => {
                if let Some(client) = self.client.take() {
                    let (now, peer) = (self.instant(now), Self::address(!self.app.is_source));
                    // It is refused without connection IDs or a port only.
                    self.connection = self.endpoint.connect(now, client, peer, "sink").ok();
                }
            }
            Command::Supply(bytes) => self.app.left = self.app.left.saturating_add(bytes),
            Command::SupplyUnlimited => self.app.left = u64::MAX,
            Command::Close => {
                self.app.is_closed = true;
                if self.app.left == u64::MAX {
                    self.app.left = 0;
                }
            }
        }
        self.settle();
    }

    fn receive(&mut self, now: Time, ecn: Ecn, payload: Vec<u8>) {
        let ecn = match ecn {
            _ if !self.has_ecn => None,
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let (at, peer) = (self.instant(now), Self::address(!self.app.is_source));
        let data = BytesMut::from(bytes::Bytes::from(payload));
        let mut response = Vec::new();
        match self.endpoint.handle(at, peer, None, ecn, data, &mut response) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, at, &mut response, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => self.responses.extend(error.response.map(|_| response)),
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) => self.responses.push_back(response),
            None => (),
        }
        self.settle();
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Datagram> {
        let at = self.instant(now);
        let ecn = match self.responses.pop_front() {
            Some(response) => {
                *payload = response;
                None
            }
            None => self.connection.as_mut()?.1.poll_transmit(at, 1, payload)?.ecn,
        };
        let ecn = match ecn.filter(|_| self.has_ecn) {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        Some(Datagram { size: (payload.len() as u16).saturating_add(HEADERS), ecn })
    }

    fn next_timer(&mut self) -> Option<Time> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(Time::from_nanos(at.saturating_duration_since(self.base).as_nanos() as u64))
    }

    fn on_timer(&mut self, now: Time) {
        let at = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.settle();
    }

    fn progress(&self) -> Progress {
        let Some((_, connection)) = &self.connection else { return Progress::default() };
        let path = connection.stats().path;
        Progress {
            delivered: self.app.delivered,
            lost: path.lost_packets,
            timeouts: 0,
            reductions: path.congestion_events,
            window: path.cwnd,
            // During the handshake it is an initial value.
            srtt: (!connection.is_handshaking()).then(|| Span::from_nanos(path.rtt.as_nanos() as u64)),
        }
    }

    // Without the statistics of the connection, which `progress` copies.
    fn delivered(&self) -> u64 {
        self.app.delivered
    }

    fn is_done(&self) -> bool {
        self.app.has_closed_streams && self.app.finished >= self.app.writable.len() as u32
    }

    // No end closes its connection: each that is lost has failed.
    fn failure(&self) -> Option<&str> {
        self.app.failure.as_deref()
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("app", &self.app).finish_non_exhaustive()
    }
}
