//! Classes of HTB at the egress of a device.
//!
//! Source: tc-htb(8); the structures of linux/pkt_sched.h, with the fields in their order. The root has one
//! class for all, with leaves below it. A leaf holds a FIFO with the length of the device's queue
//! (`txqueuelen`), unless it gets another one. A packet goes to the leaf whose handle is its `skb->priority`.

use apportion_core::limit::Limit;
use apportion_core::units::{Bytes, Rate, Span};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage, TcOption};

use super::socket::Found;
use super::statistics::ClassStatistics;
use super::{Netlink, NetlinkError};

/// Major number of the queues that the kernel backend adds to devices; these queues stay if the backend is
/// killed. Chosen: unlike numbers that people and tc choose.
pub const MAJOR: u16 = 0x4170;

/// `TCA_HTB_PARMS`, `TCA_HTB_INIT`, `TCA_HTB_RATE64` and `TCA_HTB_CEIL64`.
const PARMS: u16 = 1;
const INIT: u16 = 2;
const RATE64: u16 = 6;
const CEIL64: u16 = 7;
/// `TC_HTB_PROTOVER`.
const VERSION: u32 = 3;
/// `TCA_OPTIONS`, for queues that take a structure there.
const OPTIONS: u16 = 2;
/// Nanoseconds of a tick, the unit of buckets (/proc/net/psched).
const TICK: u64 = 64;
/// `TC_LINKLAYER_ETHERNET`: rates are of whole frames, and there is no rate table.
const ETHERNET: u8 = 1;

/// A class of HTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// The number of the class below the root's, 1 to 65535.
    pub minor: u16,
    /// The number of its parent; 0 for the root itself.
    pub parent: u16,
    /// The assured rate; above 0.
    pub rate: Rate,
    /// The ceiling up to which it may borrow.
    pub ceil: Rate,
    /// Bytes that it may send at once at its rate.
    pub burst: Bytes,
    /// Bytes that it may send at once above its rate.
    pub cburst: Bytes,
    /// Bytes of a turn, where classes borrow; from the MTU to 200 kB, or the kernel warns in its log.
    pub quantum: Bytes,
    /// Leaves with lower numbers borrow first; 0 to 7.
    pub prio: u8,
}

impl Netlink {
    /// Makes HTB the queue of a device, with the handle `major`. Packets that name no leaf go to the class
    /// `default`; 0 sends them at once.
    ///
    /// # Errors
    /// The kernel's error: `ENOENT` if it was built without HTB, `EEXIST` if the device's queue was set.
    pub fn add_htb(&mut self, device: u32, major: u16, default: u16) -> Result<(), NetlinkError> {
        let mut message = message(device, TcHandle { major, minor: 0 }, TcHandle::ROOT);
        // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
        let glob = [VERSION, 10, default.into(), 0, 0].map(u32::to_ne_bytes).concat();
        message.attributes.push(TcAttribute::Kind("htb".to_owned()));
        message.attributes.push(TcAttribute::Options(vec![option(INIT, glob)]));
        let request = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.create(request, format_args!("make HTB the queue of device {device}"))
    }

    /// Adds a class to the HTB `major` of a device.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_htb_class(&mut self, device: u32, major: u16, class: &HtbClass) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::NewTrafficClass(class_message(device, major, class));
        self.create(request, format_args!("add class {} of HTB on device {device}", class.minor))
    }

    /// Changes the parameters of an existing class; its backlog stays.
    ///
    /// # Errors
    /// The kernel's error: `ENOENT` if there is no such class.
    pub fn change_htb_class(
        &mut self,
        device: u32,
        major: u16,
        class: &HtbClass,
    ) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::NewTrafficClass(class_message(device, major, class));
        let doing = format_args!("change class {} of HTB on device {device}", class.minor);
        self.socket.request(request, 0, doing).map(drop)
    }

    /// Gives the leaf `class` of the HTB `major` a FIFO of this size.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_fifo(
        &mut self,
        device: u32,
        major: u16,
        class: u16,
        limit: Limit,
    ) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::NewQueueDiscipline(fifo_message(device, major, class, limit));
        self.create(request, format_args!("give class {class} of HTB on device {device} a FIFO"))
    }

    /// Changes the size of the FIFO of the leaf `class`, which counts packets or bytes like this limit.
    ///
    /// # Errors
    /// The kernel's error: `EINVAL` if it counts the other unit.
    pub fn change_fifo(
        &mut self,
        device: u32,
        major: u16,
        class: u16,
        limit: Limit,
    ) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::NewQueueDiscipline(fifo_message(device, major, class, limit));
        let doing = format_args!("change the FIFO of class {class} of HTB on device {device}");
        self.socket.request(request, 0, doing).map(drop)
    }

    /// The counters of all classes of the queue discipline `major` of a device; none if there is no such
    /// discipline.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn class_statistics(
        &mut self,
        device: u32,
        major: u16,
    ) -> Result<Vec<ClassStatistics>, NetlinkError> {
        let header =
            TcHeader { index: device.cast_signed(), handle: TcHandle::UNSPEC, ..TcHeader::default() };
        let request = RouteNetlinkMessage::GetTrafficClass(TcMessage::from_parts(header, Vec::new()));
        let mut all = Vec::new();
        self.socket.list(request, format_args!("read the classes of device {device}"), |found| {
            all.extend(match found {
                Found::Class(class) if class.major == major => Some(class),
                _ => None,
            });
        })?;
        Ok(all)
    }

    /// Deletes the class `minor` of the HTB `major` of a device, with its backlog. Returns whether there was
    /// one.
    ///
    /// # Errors
    /// The kernel's error: `EBUSY` if it has classes below it.
    pub fn delete_class(&mut self, device: u32, major: u16, minor: u16) -> Result<bool, NetlinkError> {
        let message = message(device, TcHandle { major, minor }, TcHandle::UNSPEC);
        let doing = format_args!("take away class {minor} of HTB on device {device}");
        self.socket.exists(RouteNetlinkMessage::DelTrafficClass(message), doing)
    }

    /// Deletes the queue `major` at the egress of a device, with its classes; a queue with another handle
    /// stays. Returns whether there was one.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn delete_queue(&mut self, device: u32, major: u16) -> Result<bool, NetlinkError> {
        let message = message(device, TcHandle { major, minor: 0 }, TcHandle::ROOT);
        let request = RouteNetlinkMessage::DelQueueDiscipline(message);
        self.socket.exists(request, format_args!("take away the queue of device {device}"))
    }
}

fn message(device: u32, handle: TcHandle, parent: TcHandle) -> TcMessage {
    let header = TcHeader { index: device.cast_signed(), handle, parent, ..TcHeader::default() };
    TcMessage::from_parts(header, Vec::new())
}

fn class_message(device: u32, major: u16, class: &HtbClass) -> TcMessage {
    let handle = |minor| TcHandle { major, minor };
    let mut message = message(device, handle(class.minor), handle(class.parent));
    let bytes = |rate: Rate| rate.as_bit() / 8;
    message.attributes.push(TcAttribute::Kind("htb".to_owned()));
    message.attributes.push(TcAttribute::Options(vec![
        option(PARMS, parms(class)),
        option(RATE64, bytes(class.rate).to_ne_bytes().to_vec()),
        option(CEIL64, bytes(class.ceil).to_ne_bytes().to_vec()),
    ]));
    message
}

fn fifo_message(device: u32, major: u16, class: u16, limit: Limit) -> TcMessage {
    let mut message = message(device, TcHandle::UNSPEC, TcHandle { major, minor: class });
    let (kind, limit) = match limit {
        Limit::Packets(packets) => ("pfifo", packets.get()),
        Limit::Bytes(bytes) => ("bfifo", bytes.get()),
    };
    // struct tc_fifo_qopt.
    let limit = u32::try_from(limit).unwrap_or(u32::MAX).to_ne_bytes().to_vec();
    message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    message.attributes.push(TcAttribute::Other(DefaultNla::new(OPTIONS, limit)));
    message
}

fn option(kind: u16, value: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, value))
}

/// struct tc_htb_opt: two of struct tc_ratespec, then buffer, cbuffer, quantum, level and prio.
fn parms(class: &HtbClass) -> Vec<u8> {
    let spec = |rate: Rate| {
        // cell_log, linklayer, overhead, cell_align, mpu, rate. Rates from 2^32 B/s are only in RATE64.
        let rate = u32::try_from(rate.as_bit() / 8).unwrap_or(u32::MAX);
        [&[0, ETHERNET, 0, 0, 0, 0, 0, 0][..], &rate.to_ne_bytes()].concat()
    };
    // A bucket is given as the time in which it fills.
    let ticks = |rate: Rate, burst: Bytes| {
        let time: Span = rate.time_for(burst);
        u32::try_from(time.as_nanos() / TICK).unwrap_or(u32::MAX)
    };
    let quantum = u32::try_from(class.quantum.get()).unwrap_or(u32::MAX);
    let buckets = [ticks(class.rate, class.burst), ticks(class.ceil, class.cburst)];
    let rest = [buckets[0], buckets[1], quantum, 0, class.prio.into()].map(u32::to_ne_bytes).concat();
    [spec(class.rate), spec(class.ceil), rest].concat()
}
