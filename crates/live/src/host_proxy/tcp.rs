//! Connections: each is two, and what comes in by one goes out by the other.
//!
//! Source: tcp(7), shutdown(2), socket(7) (`SO_LINGER`). A side is read only while the other takes what was
//! read, so at most one reading waits in each direction, and the kernel's windows slow down the senders. The end
//! of one direction is passed on by itself; a side that fails resets the other. The command's side was
//! accepted before the host's was connected, since a connection is seen only once it is established.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use apportion_linux::socket_helper::Transport;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Linger;

use super::proxy::{Watch, Watched};
use super::{Connector, Refusal};

/// One reading, in bytes.
const READING: usize = 1 << 16;
/// Readings of a direction, and connections accepted, before it is the turn of others.
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
    /// Whether the host's side is being made.
    is_connecting: bool,
    up: Relay,
    down: Relay,
}

#[derive(Debug, Default)]
struct Relay {
    /// What was read and not written, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// Whether no more comes in.
    has_ended: bool,
    /// Whether the other side knows.
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

    /// Closes a listener; its connections go on.
    pub(super) fn close(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Accepts what has come to a listener. Whether there may be more.
    pub(super) fn accept(&mut self, port: u16, connector: &mut Connector, watch: &Watch) -> bool {
        for _ in 0..TURN {
            let Some(Ok((near, _))) = self.listeners.get(&port).map(TcpListener::accept) else {
                // None waits, or no descriptor is left: those that wait are accepted when the next one comes.
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

    /// Begins the host's side of a connection, or gives back what is to be reset.
    fn connect(
        &mut self,
        near: TcpStream,
        connector: &mut Connector,
        watch: &Watch,
    ) -> Result<(), TcpStream> {
        // What was accepted has the address that it was sent to for its own.
        let Ok(to) = near.local_addr() else { return Err(near) };
        let Ok(host) = connector.open(Transport::Tcp, to) else { return Err(near) };
        let host = TcpStream::from(host);
        let number = self.next;
        self.next += 1;
        let prepare = || {
            near.set_nonblocking(true)?;
            // When to send is decided by those who write: nothing waits here to be sent with more.
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

    /// Carries what can be. Whether there may be more.
    pub(super) fn carry(&mut self, number: u64, connector: &mut Connector) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        if connection.is_connecting {
            // That it never will comes as an error of the descriptor.
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

    /// Resets both sides of a connection, one of which has failed.
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
    /// Carries from one side to the other until one of them would block. Whether there may be more.
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

    /// Writes what waits. Whether all is written.
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

/// Writes as much as is taken.
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

/// Closes a connection with a reset, as a host does that has no use for it.
fn reset(stream: TcpStream) {
    // Without the option it is closed in update, which is the next best.
    let _ = setsockopt(&stream, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    drop(stream);
}
