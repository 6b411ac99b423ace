//! Datagrams through a gateway, and work in the background.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use apportion_core::units::Span;
use apportion_linux::clock::pause;
use apportion_linux::host::Host;

/// Work that a thread repeats until this is dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    /// Runs `once` every `period`, in a host or here.
    pub fn every(period: Span, host: Option<&Host>, mut once: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let work = move || {
            while !over.load(Ordering::Relaxed) {
                once();
                pause(period);
            }
        };
        let thread = match host {
            Some(host) => host.namespace.spawn("load", work).unwrap(),
            None => std::thread::spawn(work),
        };
        Self { stop, thread: Some(thread) }
    }

    /// Sends `times` datagrams of each flow every 4 ms, of 1,000 bytes in IPv4: 2 Mb/s per datagram. A flow
    /// is from an address and port of the host to another.
    pub fn datagrams(host: &Host, times: u32, flows: Vec<[String; 2]>) -> Self {
        let open = || flows.iter().map(|[from, _]| UdpSocket::bind(from).unwrap()).collect();
        let sockets: Vec<UdpSocket> = host.namespace.run(open).unwrap();
        let send = move || {
            for _ in 0..times {
                for (socket, [_, to]) in sockets.iter().zip(&flows) {
                    // A full buffer costs a datagram.
                    let _ = socket.send_to(&[0; 972], to);
                }
            }
        };
        Self::every(Span::from_millis(4), Some(host), send)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
