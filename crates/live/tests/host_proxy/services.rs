//! Services on the host's loopback: their sockets are created there, and serve there whichever thread uses
//! them. Each thread ends with the test's process.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;

/// Sends all input back until its end, on each connection.
pub fn echo_streams(listener: TcpListener) {
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                loop {
                    match stream.read(&mut bytes) {
                        Ok(0) | Err(_) => break,
                        Ok(length) => stream.write_all(&bytes[..length]).unwrap(),
                    }
                }
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
}

/// Reads all of one connection, and only then sends the number of bytes.
pub fn count_bytes(listener: TcpListener) {
    spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stream.write_all(bytes.len().to_string().as_bytes()).unwrap();
    });
}

/// Sends as much as one connection takes, and returns a channel with the length of each write.
pub fn pour(listener: TcpListener) -> Receiver<usize> {
    let (sender, lengths) = channel();
    spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while let Ok(length) = stream.write(&[7; 1 << 14]) {
            let _ = sender.send(length);
        }
    });
    lengths
}

/// Sends back each datagram behind a prefix.
pub fn echo_datagrams(socket: UdpSocket, prefix: &'static [u8]) {
    spawn(move || {
        let mut bytes = [0; 2_000];
        while let Ok((length, sender)) = socket.recv_from(&mut bytes) {
            socket.send_to(&[prefix, &bytes[..length]].concat(), sender).unwrap();
        }
    });
}
