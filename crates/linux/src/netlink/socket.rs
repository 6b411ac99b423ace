//! A netlink socket that sends one request and waits for its acknowledgement.
//!
//! Source: netlink(7); RFC 3549, section 2.3. Only the requested parts of an answer are read: the fixed header
//! of a route or a device, with its state, the counters of a class, and the kernel's message in an extended acknowledgement.
//! Attributes of later kernels are ignored.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    ErrorBuffer, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NetlinkMessage, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkHeader;
use netlink_packet_route::route::RouteHeader;
use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recvfrom, send, setsockopt,
    socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::{setsockopt_impl, sockopt_impl};

use super::NetlinkError;
use super::statistics::ClassStatistics;

sockopt_impl!(
    /// Adds the kernel's message to errors.
    ExtendedAcknowledgement,
    SetOnly,
    libc::SOL_NETLINK,
    libc::NETLINK_EXT_ACK,
    bool
);
sockopt_impl!(
    /// Leaves the request out of errors.
    CappedAcknowledgement,
    SetOnly,
    libc::SOL_NETLINK,
    libc::NETLINK_CAP_ACK,
    bool
);

/// Limit of a wait in seconds. The kernel acts on a request before `send` returns, so this only guards
/// against a broken kernel.
const LIMIT_SECONDS: i64 = 5;
/// Maximum of messages read before an acknowledgement is no longer expected.
const MAX_MESSAGES: usize = 64;
/// Maximum of messages of a list: 65,535 classes of some 300 B, in messages of at least 8 KiB.
const MAX_PARTS: usize = 4_096;
/// Receive buffer. The kernel fits an answer to the reader's buffer, up to 32 KiB.
const ROOM: usize = 32 * 1024;
/// `NLMSGERR_ATTR_MSG` of linux/netlink.h.
const ERROR_MESSAGE: u16 = 1;

/// The fields of a device that are used here.
pub(super) struct Link {
    pub(super) header: LinkHeader,
    /// Whether the state of RFC 2863 is "up" (`IF_OPER_UP` of linux/if.h is 6), which it becomes together
    /// with the device's queue. `IFF_RUNNING` is not enough: it is set even while the state is unknown.
    pub(super) is_operational: bool,
    /// The longest IP packet; 0 if the kernel does not report it.
    pub(super) mtu: u32,
    /// Maximum of segments of a super-packet; 0 if the kernel does not report it.
    pub(super) gso_max_segs: u32,
    /// The index of the bridge, bond or other device that it is part of; 0 for none.
    pub(super) master: u32,
}

/// The requested object.
pub(super) enum Found {
    Device(Link),
    Route(RouteHeader),
    /// A class of a queue discipline.
    Class(ClassStatistics),
}

/// One message of an answer.
enum Answer {
    /// The request was done.
    Done,
    /// The request was refused, with the kernel's message.
    Refused(Errno, String),
    /// The requested object.
    Found(Found),
}

#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    pub(super) fn open() -> Result<Self, Errno> {
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        setsockopt(&fd, ReceiveTimeout, &TimeVal::seconds(LIMIT_SECONDS))?;
        // Linux 4.12 and 4.2; without them errors only have less text.
        let _ = setsockopt(&fd, ExtendedAcknowledgement, &true);
        let _ = setsockopt(&fd, CappedAcknowledgement, &true);
        Ok(Self { fd, buffer: vec![0; ROOM], sequence: 0 })
    }

    /// Sends `message` and waits for the kernel's acknowledgement. Returns the device or route of the answer,
    /// if it has one.
    pub(super) fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        doing: fmt::Arguments<'_>,
    ) -> Result<Option<Found>, NetlinkError> {
        let mut found = None;
        self.exchange(message, NLM_F_ACK | flags, MAX_MESSAGES, doing, |answer| found = Some(answer))?;
        Ok(found)
    }

    /// Sends `message` about an object that may not exist. Returns whether it did.
    pub(super) fn exists(
        &mut self,
        message: RouteNetlinkMessage,
        doing: fmt::Arguments<'_>,
    ) -> Result<bool, NetlinkError> {
        match self.request(message, 0, doing) {
            Ok(_) => Ok(true),
            // The object does not exist, or its parent does not.
            Err(NetlinkError::Refused { errno: Errno::ENOENT | Errno::EINVAL | Errno::ENODEV, .. }) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `message`, which requests a list, and calls `take` for each entry.
    pub(super) fn list(
        &mut self,
        message: RouteNetlinkMessage,
        doing: fmt::Arguments<'_>,
        take: impl FnMut(Found),
    ) -> Result<(), NetlinkError> {
        self.exchange(message, NLM_F_DUMP, MAX_PARTS, doing, take)
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        most: usize,
        doing: fmt::Arguments<'_>,
        mut take: impl FnMut(Found),
    ) -> Result<(), NetlinkError> {
        let failed = |errno| NetlinkError::Socket { doing: doing.to_string(), errno };
        let malformed = |what| NetlinkError::Malformed { doing: doing.to_string(), what };
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = self.emit(message, flags);
        retried(|| send(self.fd.as_raw_fd(), &bytes, MsgFlags::empty())).map_err(failed)?;

        for _ in 0..most {
            let fd = self.fd.as_raw_fd();
            let (length, from) =
                retried(|| recvfrom::<NetlinkAddr>(fd, &mut self.buffer)).map_err(|errno| match errno {
                    Errno::EAGAIN => malformed("none came in 5 s"),
                    errno => failed(errno),
                })?;
            if from.is_none_or(|from| from.pid() != 0) {
                continue; // not the kernel
            }
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                let (answer, behind) = next(rest, self.sequence).map_err(malformed)?;
                match answer {
                    Some(Answer::Done) => return Ok(()),
                    Some(Answer::Refused(errno, message)) => {
                        return Err(NetlinkError::Refused { doing: doing.to_string(), errno, message });
                    }
                    Some(Answer::Found(answer)) => take(answer),
                    None => {}
                }
                rest = behind;
            }
        }
        Err(malformed("it has no end"))
    }

    fn emit(&self, message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }
}

/// Repeats a system call that a signal interrupted, a bounded number of times.
fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..MAX_MESSAGES {
        match call() {
            Err(Errno::EINTR) => {}
            done => return done,
        }
    }
    Err(Errno::EINTR)
}

/// Parses the first message in `bytes`, if it answers request `sequence`; and the bytes after it.
fn next(bytes: &[u8], sequence: u32) -> Result<(Option<Answer>, &[u8]), &'static str> {
    let message = NetlinkBuffer::new_checked(&bytes).map_err(|_| "a message is cut short")?;
    let length = (message.length() as usize).next_multiple_of(4).min(bytes.len());
    let behind = bytes.get(length..).unwrap_or_default();
    if message.sequence_number() != sequence {
        return Ok((None, behind));
    }
    let answer = match message.message_type() {
        NLMSG_ERROR => {
            let error = ErrorBuffer::new_checked(message.payload()).map_err(|_| "an error is cut short")?;
            Some(match error.code() {
                None => Answer::Done,
                Some(code) => Answer::Refused(
                    Errno::from_raw(code.get().saturating_neg()),
                    kernel_message(message.flags(), message.payload()),
                ),
            })
        }
        // The end of a list, with its error.
        NLMSG_DONE => match message.payload().first_chunk().copied().map_or(0, i32::from_ne_bytes) {
            error if error < 0 => {
                Some(Answer::Refused(Errno::from_raw(error.saturating_neg()), String::new()))
            }
            _ => Some(Answer::Done),
        },
        libc::RTM_NEWTCLASS => Some(Answer::Found(Found::Class(ClassStatistics::read(message.payload())?))),
        libc::RTM_NEWLINK => Some(Answer::Found(Found::Device(link(message.payload())?))),
        libc::RTM_NEWROUTE => {
            let header = RouteHeader::parse(message.payload()).map_err(|_| "a route is cut short")?;
            Some(Answer::Found(Found::Route(header)))
        }
        _ => None,
    };
    Ok((answer, behind))
}

/// From linux/if_link.h; libc does not have it on every system.
const IFLA_GSO_MAX_SEGS: u16 = 40;

/// Parses the device of a message: a header of 16 B, then attributes.
fn link(payload: &[u8]) -> Result<Link, &'static str> {
    let header = LinkHeader::parse(payload).map_err(|_| "a device is cut short")?;
    let attributes = payload.get(16..).unwrap_or_default();
    let mut link = Link { header, is_operational: false, mtu: 0, gso_max_segs: 0, master: 0 };
    for attribute in NlasIterator::new(&attributes).map_while(Result::ok) {
        let number = || attribute.value().first_chunk().copied().map_or(0, u32::from_ne_bytes);
        match attribute.kind() {
            libc::IFLA_OPERSTATE => link.is_operational = attribute.value() == [6],
            libc::IFLA_MTU => link.mtu = number(),
            libc::IFLA_MASTER => link.master = number(),
            IFLA_GSO_MAX_SEGS => link.gso_max_segs = number(),
            _ => (),
        }
    }
    Ok(link)
}

/// The kernel's text in the error message `payload`, after the error (4 B) and the header (16 B) of the
/// request, which is capped. Empty if there is none.
fn kernel_message(flags: u16, payload: &[u8]) -> String {
    let attributes = payload.get(20..).unwrap_or_default();
    if flags & NLM_F_ACK_TLVS == 0 {
        return String::new();
    }
    NlasIterator::new(&attributes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == ERROR_MESSAGE)
        .map(|attribute| String::from_utf8_lossy(attribute.value()).trim_end_matches('\0').to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    /// An error message of request 7: header 16 B, error 4 B, header of the request 16 B, attributes.
    fn error(code: i32, flags: u16, attributes: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((36 + attributes.len() as u32).to_ne_bytes());
        bytes.extend(NLMSG_ERROR.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(7u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn an_error_of_zero_is_an_acknowledgement() {
        assert!(matches!(next(&error(0, 0, &[]), 7), Ok((Some(Answer::Done), []))));
    }

    #[test]
    fn an_answer_to_another_request_is_passed_over() {
        assert!(matches!(next(&error(0, 0, &[]), 8), Ok((None, []))));
    }

    #[test]
    fn an_error_comes_with_the_kernels_words() {
        // Length 4 + 3 = 7, kind 1, "no\0", 1 B of padding.
        let attribute = [&7u16.to_ne_bytes()[..], &1u16.to_ne_bytes(), b"no\0\0"].concat();
        let bytes = error(-22, NLM_F_ACK_TLVS, &attribute);
        assert!(
            matches!(next(&bytes, 7), Ok((Some(Answer::Refused(Errno::EINVAL, message)), [])) if message == "no")
        );
    }

    #[test]
    fn a_list_ends_with_what_ended_it() {
        let end = |code: i32| {
            let mut bytes = error(code, 0, &[]);
            bytes[4..6].copy_from_slice(&NLMSG_DONE.to_ne_bytes());
            bytes
        };
        assert!(matches!(next(&end(0), 7), Ok((Some(Answer::Done), []))));
        assert!(matches!(next(&end(-12), 7), Ok((Some(Answer::Refused(Errno::ENOMEM, _)), []))));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), sequence: u32) {
            let mut rest = &bytes[..];
            while let Ok((_, behind)) = next(rest, sequence) {
                prop_assert!(behind.len() < rest.len());
                rest = behind;
            }
        }
        #[test]
        fn no_error_panics(attributes in prop::collection::vec(any::<u8>(), 0..80), code: i32, flags: u16) {
            prop_assert!(next(&error(code, flags, &attributes), 7).is_ok());
        }
    }
}
