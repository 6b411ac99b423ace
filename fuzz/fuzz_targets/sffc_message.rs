//! Any bytes as a message of SF-FC: no panic, what is read can be written and read again, and a Manager bears it.
//! Run with `cargo +nightly fuzz run sffc_message`.

#![no_main]

use apportion_core::FlowId;
use apportion_sffc::message::{FlowKey, Key, MAX_SIZE, Message, RouterId};
use apportion_sffc::{FlowReport, Forwarding, Manager, ManagerParams, Port};
use apportion_core::random::Stream;
use apportion_core::units::{Span, Time};
use libfuzzer_sys::fuzz_target;

/// A router that carries every flow by every port; flows differ by the first byte of their names.
struct Router;

impl Forwarding for Router {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        FlowKey::from_bytes(&[flow.0 as u8])
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        key.as_bytes().first().map(|byte| FlowId(u32::from(*byte)))
    }
    fn carries(&self, _: Port, _: FlowId) -> bool {
        true
    }
    fn on_report(&mut self, _: Port, report: FlowReport) {
        assert!(report.departed <= report.arrived && report.interval > Span::ZERO);
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::decode(data, None) {
        let again = message.encode(None).expect("what was read fits a message");
        assert_eq!(Message::decode(&again, None), Ok(message));
    }
    _ = Message::decode(data, Some(&Key::new(b"key")));
    let random = Stream::new(1, "fuzz");
    let mut manager = Manager::new(RouterId(1), &ManagerParams::default(), None, random);
    for at in 0..3 {
        manager.receive(Time::from_secs(at), Port(0), data, &mut Router);
        while let Some(out) = manager.transmit() {
            assert!(out.bytes.len() <= MAX_SIZE);
        }
    }
});
