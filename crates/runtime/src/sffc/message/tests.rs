//! Messages as bytes: written messages are read back, and other bytes are refused.

use apportion_testing::properties::cases;
use proptest::prelude::*;

use super::*;

fn flow_key() -> impl Strategy<Value = FlowKey> {
    proptest::collection::vec(any::<u8>(), 1..=MAX_KEY).prop_map(|key| FlowKey::from_bytes(&key).unwrap())
}

fn proof() -> impl Strategy<Value = Proof> {
    (any::<u64>(), any::<u64>()).prop_map(|(cookie, sequence)| Proof { cookie, sequence })
}

fn state() -> impl Strategy<Value = FlowState> {
    (flow_key(), any::<u64>(), any::<u64>()).prop_map(|(key, arrived, departed)| FlowState {
        key,
        arrived: Bytes::new(arrived),
        departed: Bytes::new(departed),
    })
}

fn message() -> impl Strategy<Value = Message> {
    let router = any::<u128>().prop_map(RouterId);
    let keys = || proptest::collection::vec(flow_key(), 1..20);
    let states = proptest::collection::vec(state(), 1..20);
    prop_oneof![
        (router.clone(), any::<u64>(), proptest::option::of(proof()), keys()).prop_map(
            |(router, nonce, proof, flows)| {
                Message::Query(Query { router, nonce, scope: Scope::Neighbours, proof, flows })
            }
        ),
        (router.clone(), any::<u64>(), flow_key()).prop_map(|(router, nonce, key)| {
            let (scope, flows) = (Scope::TowardsSource, vec![key]);
            Message::Query(Query { router, nonce, scope, proof: None, flows })
        }),
        (router.clone(), any::<u64>(), any::<u64>(), keys()).prop_map(|(router, nonce, cookie, flows)| {
            Message::Answer(Answer { router, nonce, cookie, flows })
        }),
        (router, proof(), any::<u64>(), states).prop_map(|(router, proof, interval, flows)| {
            Message::Report(Report { router, proof, interval: Span::from_nanos(interval), flows })
        }),
    ]
}

fn shared() -> Key {
    Key::new(b"a key that two routers share")
}

fn key(bytes: &[u8]) -> FlowKey {
    FlowKey::from_bytes(bytes).unwrap()
}

fn query() -> Message {
    let (router, scope) = (RouterId(2), Scope::Neighbours);
    Message::Query(Query { router, nonce: 3, scope, proof: None, flows: vec![key(b"one"), key(b"two")] })
}

fn report() -> Message {
    let flow = |name| FlowState { key: key(name), arrived: Bytes::new(1_000), departed: Bytes::new(400) };
    let proof = Proof { cookie: 5, sequence: 6 };
    let flows = vec![flow(b"one"), flow(b"two")];
    Message::Report(Report { router: RouterId(2), proof, interval: Span::from_millis(50), flows })
}

/// `message` with `extra` after its fields and a matching length.
fn with_fields(message: &Message, extra: &[u8]) -> Vec<u8> {
    let mut bytes = message.encode(None).unwrap();
    bytes.extend_from_slice(extra);
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    bytes[8..10].copy_from_slice(&length);
    bytes
}

fn refused(bytes: &[u8]) -> DecodeError {
    Message::decode(bytes, None).unwrap_err()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn what_is_written_is_read_back(message in message(), keyed: bool) {
        let key = keyed.then(shared);
        let Some(bytes) = message.encode(key.as_ref()) else {
            return Err(TestCaseError::fail("20 flows of 58 bytes fit"));
        };
        prop_assert_eq!(Message::decode(&bytes, key.as_ref()), Ok(message));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1_400)) {
        _ = Message::decode(&bytes, None);
        _ = Message::decode(&bytes, Some(&shared()));
    }

    #[test]
    fn no_bytes_behind_a_good_header_make_the_reader_panic(
        kind in 0_u8..5,
        fields in proptest::collection::vec((0_u8..10, 0_u8..70, any::<u8>()), 0..60),
    ) {
        let mut bytes = b"SFFC\x01\x00\x00\x00\x00\x00".to_vec();
        bytes[6] = kind;
        for (kind, length, byte) in fields {
            bytes.extend_from_slice(&[kind, length]);
            bytes.resize(bytes.len() + usize::from(length), byte);
        }
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        bytes[8..10].copy_from_slice(&length);
        if let Ok(message) = Message::decode(&bytes, None) {
            // A message that was read can be written.
            let written = message.encode(None);
            prop_assert_eq!(Message::decode(&written.unwrap(), None), Ok(message));
        }
    }

    #[test]
    fn with_a_key_no_bit_may_flip_and_no_byte_be_missing(
        message in message(),
        at: prop::sample::Index,
        bit in 0..8,
    ) {
        let mut bytes = message.encode(Some(&shared())).unwrap();
        let at = at.index(bytes.len());
        prop_assert!(Message::decode(&bytes[..at], Some(&shared())).is_err());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(Message::decode(&bytes, Some(&shared())).is_err());
    }
}

#[test]
fn every_truncation_is_noticed_without_a_key_too() {
    for message in [query(), report()] {
        let bytes = message.encode(None).unwrap();
        for cut in 0..bytes.len() {
            assert_eq!(refused(&bytes[..cut]), DecodeError::Truncated);
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(refused(&longer), DecodeError::TooLong);
    }
}

#[test]
fn a_key_is_one_to_forty_bytes() {
    assert_eq!(FlowKey::from_bytes(&[]), None);
    assert_eq!(FlowKey::from_bytes(&[7; 41]), None);
    assert_eq!(key(&[7; 40]).as_bytes(), [7; 40]);
    assert_ne!(key(&[0]), key(&[0, 0]), "the length counts");
}

#[test]
fn a_later_minor_version_is_read_and_another_major_is_not() {
    let mut bytes = query().encode(None).unwrap();
    bytes[5] = 9;
    assert_eq!(Message::decode(&bytes, None), Ok(query()));
    bytes[4] = 2;
    assert_eq!(refused(&bytes), DecodeError::Version);
    bytes[4] = 0;
    assert_eq!(refused(&bytes), DecodeError::Version);
}

#[test]
fn fields_that_are_not_known_are_skipped() {
    // Types 8 and 200, with no and with three bytes of value, and unknown flags.
    let mut bytes = with_fields(&query(), &[8, 0, 200, 3, 1, 2, 3]);
    bytes[7] = 0xfe;
    assert_eq!(Message::decode(&bytes, None), Ok(query()));
    // Fields that only another type of message has are ignored too: an interval in a query.
    let interval = [&[field::INTERVAL, 8][..], &[0; 8]].concat();
    assert_eq!(Message::decode(&with_fields(&query(), &interval), None), Ok(query()));
}

#[test]
fn lengths_that_do_not_agree_are_refused() {
    let cases: [(&[u8], &str); 7] = [
        (&[200], "a type without length"),
        (&[200, 3, 1, 2], "a value that reaches beyond the end"),
        (&[field::FLOW, 0], "an empty key"),
        (&[&[field::FLOW, 41][..], &[1; 41]].concat(), "a key too long"),
        (&[&[field::COOKIE, 7][..], &[1; 7]].concat(), "a cookie of seven bytes"),
        (&[&[field::STATE, 16][..], &[1; 16]].concat(), "a state without a key"),
        (&[&[field::STATE, 57][..], &[1; 57]].concat(), "a state with a key too long"),
    ];
    for (extra, what) in cases {
        assert_eq!(refused(&with_fields(&query(), extra)), DecodeError::FieldLength, "{what}");
    }
}

#[test]
fn a_message_is_at_most_as_large_as_all_links_carry() {
    // 3 bytes of key take 5 in a query: as many as there is room for, and one more than fits.
    let (router, scope) = (RouterId(2), Scope::Neighbours);
    let query = |count| {
        let proof = Some(Proof { cookie: 1, sequence: 2 });
        Message::Query(Query { router, nonce: 3, scope, proof, flows: vec![key(b"abc"); count] })
    };
    let room = ROOM / 5;
    let bytes = query(room).encode(Some(&shared())).unwrap();
    assert!(bytes.len() <= MAX_SIZE && bytes.len() + 20 > MAX_SIZE, "{}", bytes.len());
    assert_eq!(query(MAX_SIZE / 5).encode(None), None);
    // A reader accepts no more: an unknown field of 255 bytes five times.
    let filler: Vec<u8> = (0..5).flat_map(|_| [&[200, 255][..], &[0; 255]].concat()).collect();
    assert_eq!(refused(&with_fields(&query(1), &filler)), DecodeError::TooLong);
}

#[test]
fn the_first_thing_that_is_wrong_is_named() {
    let bytes = query().encode(None).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        refused(&bytes)
    };
    assert_eq!(changed(0, b'X'), DecodeError::Magic);
    assert_eq!(changed(6, 0), DecodeError::Type);
    assert_eq!(changed(6, 4), DecodeError::Type);
    assert_eq!(changed(6, ANSWER), DecodeError::Missing, "an answer has a cookie");
    assert_eq!(changed(6, REPORT), DecodeError::Missing, "a report has states of flows");
    assert_eq!(changed(7, TOWARDS_SOURCE), DecodeError::Missing, "there is one source of one flow");
    assert_eq!(changed(9, 0), DecodeError::TooLong, "the length says less");
    let twice = [&[field::NONCE, 8][..], &[0; 8]].concat();
    assert_eq!(refused(&with_fields(&query(), &twice)), DecodeError::Duplicate);
    let mut nameless = bytes.clone();
    nameless[HEADER] = 200;
    assert_eq!(refused(&nameless), DecodeError::Missing, "its router");
    let all: Vec<_> = DecodeError::ALL.iter().map(|error| *error as usize).collect();
    assert_eq!(all, (0..10).collect::<Vec<_>>(), "they are counted by number");
}

#[test]
fn with_a_key_only_its_own_authenticator_counts() {
    let decode = |bytes: &[u8], key: &Key| Message::decode(bytes, Some(key)).unwrap_err();
    let bare = report().encode(None).unwrap();
    assert_eq!(decode(&bare, &shared()), DecodeError::Unauthenticated);
    let bytes = report().encode(Some(&shared())).unwrap();
    assert_eq!(decode(&bytes, &Key::new(b"another key")), DecodeError::Forged);
    // Not at the end: it would not cover the fields after it.
    let mut extended = [&bytes[..], &[200, 0]].concat();
    let length = u16::try_from(extended.len()).unwrap().to_be_bytes();
    extended[8..10].copy_from_slice(&length);
    assert_eq!(decode(&extended, &shared()), DecodeError::Unauthenticated);
    // A reader without a key cannot check, and reads the message.
    assert_eq!(Message::decode(&bytes, None), Ok(report()));
}

#[test]
fn the_authenticator_is_hmac_sha_256() {
    // RFC 4231, test cases 2 (a short key) and 6 (a key longer than a block).
    let start = |key: &[u8], text: &[u8]| Key::new(key).authenticate(text)[..8].to_vec();
    let two = start(b"Jefe", b"what do ya want for nothing?");
    assert_eq!(two, [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    let six = start(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
    assert_eq!(six, [0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f]);
}
