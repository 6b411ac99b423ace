//! Transcripts of a receiver: the times and the contents of its acknowledgments (RFC 9000 section 13.2).

use apportion_core::Ecn;
use apportion_core::units::Span;
use apportion_scenario::quic::MAX_RANGES;

use super::transcript::{Listener, at};

#[test]
fn every_second_packet_is_acknowledged_or_one_after_25_ms() {
    let mut listener = Listener::new(&[]);
    assert_eq!(listener.hear(at(0), 0), None);
    assert_eq!(listener.hear(at(1), 1), Some(vec![(0, 2)]));
    assert_eq!((listener.hear(at(2), 2), listener.receiver.next_timer()), (None, Some(at(27))));
    listener.receiver.on_timer(at(27), &mut listener.out);
    let (ack, ranges) = listener.out.acks().pop().unwrap();
    // The ACK reports the delay of the highest packet.
    assert_eq!((ack.delay(), ranges), (Span::from_millis(25), vec![(0, 3)]));
    assert_eq!((listener.receiver.next_timer(), listener.receiver.delivered()), (None, 300));
    let mut prompt = Listener::new(&[("delayed_ack", "off")]);
    assert_eq!(prompt.hear(at(0), 0), Some(vec![(0, 1)]));
}

#[test]
fn a_gap_what_fills_it_and_a_mark_are_acknowledged_at_once() {
    let mut listener = Listener::new(&[("ecn", "true")]);
    assert_eq!(listener.hear(at(0), 0), None);
    // 1 is missing before 2.
    assert_eq!(listener.hear(at(1), 2), Some(vec![(2, 3), (0, 1)]));
    // Packet 1 is still missing, but not just before 3.
    assert_eq!(listener.hear(at(2), 3), None);
    assert_eq!(listener.receiver.delivered(), 100);
    assert_eq!(listener.hear(at(3), 1), Some(vec![(0, 4)]));
    assert_eq!(listener.receiver.delivered(), 400);
    let (ack, _) = listener.hear_with(at(4), 4, 0, Ecn::Ce).unwrap();
    assert_eq!(ack.ce, 1);
}

#[test]
fn an_acknowledgment_has_32_ranges_at_most_the_highest_of_all() {
    let mut listener = Listener::new(&[]);
    let last = (0..200).filter_map(|number| listener.hear(at(number), 2 * number as u32)).last().unwrap();
    assert_eq!(last.len(), MAX_RANGES);
    let expected: Vec<_> = (0..MAX_RANGES as u32).map(|k| (398 - 2 * k, 399 - 2 * k)).collect();
    assert_eq!(last, expected);
    // Unreported ranges are forgotten: when the gaps between the others are filled, one range is left.
    let rest = (0..31).filter_map(|k| listener.hear(at(300), 337 + 2 * k)).last().unwrap();
    assert_eq!(rest, [(336, 399)]);
}

#[test]
fn what_the_sender_has_heard_is_not_repeated() {
    let mut listener = Listener::new(&[]);
    listener.hear(at(0), 0);
    let (gap, ranges) = listener.hear_with(at(1), 2, 0, Ecn::NotEct).unwrap();
    assert_eq!(ranges, [(2, 3), (0, 1)]);
    assert_eq!(listener.hear(at(2), 4), Some(vec![(4, 5), (2, 3), (0, 1)]));
    // The sender received the ACK with 0 and 2, whose highest was 2: ranges below that need not be repeated.
    let (_, ranges) = listener.hear_with(at(3), 6, gap.number, Ecn::NotEct).unwrap();
    assert_eq!(ranges, [(6, 7), (4, 5), (2, 3)]);
}
