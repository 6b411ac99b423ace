//! Connections: each consists of two, and the proxy copies bytes between them.
//!
//! Source: tcp(7), shutdown(2), socket(7) (`SO_LINGER`). The proxy reads a side only while the other takes
//! the bytes, so at most one buffer waits in each direction, and the kernel's windows slow the senders down.
//! The end of one direction is passed on by itself; when one side fails, the other is reset. The command's
//! side is accepted before the host's side connects, because the proxy sees a connection only once it is
//! established.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use apportion_linux::socket_helper::Transport;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Linger;

use super::proxy::{Watch, Watched};
use super::{Connector, Refusal};

/// Bytes of one read.
const READING: usize = 1 << 16;
/// Maximum of reads of a direction, and of accepted connections, before others get their turn.
const TURN: usize = 16;

/// All connections, and the listeners that accept them.
#[derive(Debug)]
pub(super) struct Tcp {
    listeners: BTreeMap<u16, TcpListener>,
    connections: BTreeMap<u64, Connection>,
    most: usize,
    next: u64,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    near: TcpStream,
    host: TcpStream,
    /// Whether the host's side is still connecting.
    is_connecting: bool,
    up: Relay,
    down: Relay,
}

#[derive(Debug, Default)]
struct Relay {
    /// Bytes read and not written, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// Whether the input has ended.
    has_ended: bool,
    /// Whether the end was passed on to the other side.
    is_shut: bool,
}

impl Tcp {
    pub(super) fn new(most: usize) -> Self {
        let scratch = vec![0; READING];
        Self { listeners: BTreeMap::new(), connections: BTreeMap::new(), most, next: 0, scratch }
    }

    pub(super) fn open(&mut self, port: u16, listener: TcpListener) {
        self.listeners.insert(port, listener);
    }

    /// Closes a listener; its connections stay.
    pub(super) fn close(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Accepts the connections of a listener. Returns whether there may be more.
    pub(super) fn accept(&mut self, port: u16, connector: &mut Connector, watch: &Watch) -> bool {
        for _ in 0..TURN {
            let Some(Ok((near, _))) = self.listeners.get(&port).map(TcpListener::accept) else {
                // None waits, or no descriptor is free: then waiting ones are accepted when the next one
                // comes.
                return false;
            };
            if self.connections.len() >= self.most {
                connector.refuse(Refusal::TooMany);
                reset(near);
            } else if let Err(near) = self.connect(near, connector, watch) {
                reset(near);
            }
        }
        true
    }

    /// Starts the host's side of a connection, or gives the command's side back to be reset.
    fn connect(
        &mut self,
        near: TcpStream,
        connector: &mut Connector,
        watch: &Watch,
    ) -> Result<(), TcpStream> {
        // The local address of an accepted connection is its destination.
        let Ok(to) = near.local_addr() else { return Err(near) };
        let Ok(host) = connector.open(Transport::Tcp, to) else { return Err(near) };
        let host = TcpStream::from(host);
        let number = self.next;
        self.next += 1;
        let prepare = || {
            near.set_nonblocking(true)?;
            // The writers decide when to send: the proxy delays no bytes to send them with more.
            near.set_nodelay(true)?;
            host.set_nodelay(true)?;
            watch.add(&near, Watched::Connection(number))?;
            watch.add(&host, Watched::Connection(number))?;
            io::Result::Ok(())
        };
        if prepare().is_err() {
            connector.refuse(Refusal::Other);
            return Err(near);
        }
        let (up, down) = (Relay::default(), Relay::default());
        self.connections.insert(number, Connection { near, host, is_connecting: true, up, down });
        Ok(())
    }

    /// Copies bytes in both directions. Returns whether there may be more.
    pub(super) fn carry(&mut self, number: u64, connector: &mut Connector) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        if connection.is_connecting {
            // A failure to connect comes as an error of the descriptor.
            if connection.host.peer_addr().is_err() {
                return false;
            }
            connection.is_connecting = false;
            connector.counts.connections += 1;
        }
        let Connection { near, host, up, down, .. } = connection;
        let bytes = &mut connector.counts.bytes;
        let carried = up
            .carry(near, host, &mut self.scratch, &mut bytes.up)
            .and_then(|more| Ok(down.carry(host, near, &mut self.scratch, &mut bytes.down)? || more));
        match carried {
            Ok(_) if up.is_shut && down.is_shut => {
                self.connections.remove(&number);
                false
            }
            Ok(more) => more,
            Err(_) => {
                self.fail(number, connector);
                false
            }
        }
    }

    /// Resets both sides of a connection after one of them failed.
    pub(super) fn fail(&mut self, number: u64, connector: &mut Connector) {
        let Some(Connection { near, host, is_connecting, .. }) = self.connections.remove(&number) else {
            return;
        };
        match host.take_error() {
            Ok(Some(error)) if is_connecting => connector.refuse(Refusal::of_socket(&error)),
            _ => connector.counts.broken_off += 1,
        }
        reset(near);
        reset(host);
    }
}

impl Relay {
    /// Copies from one side to the other until one of them would block. Returns whether there may be more.
    fn carry(
        &mut self,
        mut from: &TcpStream,
        to: &TcpStream,
        scratch: &mut [u8],
        carried: &mut u64,
    ) -> io::Result<bool> {
        for _ in 0..TURN {
            if self.is_shut || !self.write_waiting(to)? {
                return Ok(false);
            }
            if self.has_ended {
                to.shutdown(Shutdown::Write)?;
                self.is_shut = true;
                return Ok(false);
            }
            match from.read(scratch) {
                Ok(0) => self.has_ended = true,
                Ok(length) => {
                    *carried += length as u64;
                    let written = write(to, &scratch[..length])?;
                    self.waiting.extend_from_slice(&scratch[written..length]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Writes the waiting bytes. Returns whether all are written.
    fn write_waiting(&mut self, to: &TcpStream) -> io::Result<bool> {
        if self.waiting.is_empty() {
            return Ok(true);
        }
        self.written += write(to, &self.waiting[self.written..])?;
        if self.written < self.waiting.len() {
            return Ok(false);
        }
        // Idle connections hold no memory.
        self.waiting = Vec::new();
        self.written = 0;
        Ok(true)
    }
}

/// Writes as many bytes as the side takes.
fn write(mut to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match to.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Closes a connection with a reset, as a host does that refuses it.
fn reset(stream: TcpStream) {
    // Without the option it is closed in order, the next best.
    let _ = setsockopt(&stream, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    drop(stream);
}
