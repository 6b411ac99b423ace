//! A video behind a link of the shell, next to bulk transfers of the same host: its receiver and its source.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use super::tests::PORT;

/// Accepts any connection, and writes the number of bytes received in datagrams.
pub fn sink(file: &Path) {
    let listener = TcpListener::bind(("0.0.0.0", PORT + 1)).unwrap();
    spawn(move || {
        for stream in listener.incoming() {
            spawn(|| std::io::copy(&mut stream.unwrap(), &mut std::io::sink()));
        }
    });
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    let (mut bytes, mut buffer) = (0, [0; 2_048]);
    loop {
        bytes += socket.recv(&mut buffer).unwrap();
        // Replaced by renaming: this process can be killed at any moment.
        let next = file.with_extension("next");
        fs::write(&next, bytes.to_string()).unwrap();
        fs::rename(&next, file).unwrap();
    }
}

/// Sends a video of 1.2 Mb/s for 4 s, five datagrams per 40 ms, next to `bulk` connections. Returns the bytes
/// of its datagrams.
pub fn film(bulk: usize) {
    let far = std::env::var("APPORTION_FAR").unwrap();
    for _ in 0..bulk {
        let mut stream = TcpStream::connect((far.as_str(), PORT + 1)).unwrap();
        spawn(move || while stream.write_all(&[0; 65_536]).is_ok() {});
    }
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect((far, PORT)).unwrap();
    sleep(Duration::from_secs(1));
    let start = Instant::now();
    for frame in 1..=100 {
        (0..5).for_each(|_| drop(socket.send(&[0; 1_172])));
        sleep(Duration::from_millis(40 * frame).saturating_sub(start.elapsed()));
    }
    sleep(Duration::from_millis(300));
    println!("\nMEASURED {}", 100 * 5 * 1_172);
}

/// Sends 2 Mb/s, and reads the first overload notification. Returns its time in milliseconds.
pub fn overload(socket: &Path) {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("{\"title\":\"shell\""));
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect((std::env::var("APPORTION_FAR").unwrap(), PORT)).unwrap();
    let start = Instant::now();
    spawn(move || {
        for packet in 1..400 {
            let _ = socket.send(&[0; 1_172]);
            sleep((Duration::from_micros(4_800) * packet).saturating_sub(start.elapsed()));
        }
    });
    let line = lines.next().unwrap().unwrap();
    println!("\nMEASURED {}\n{line}", start.elapsed().as_millis());
}
