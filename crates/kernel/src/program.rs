//! The tc programs: loading them, attaching them to the egress of a device, and their maps.
//!
//! Needs CAP_BPF and CAP_NET_ADMIN, and a kernel from 5.12 on with the bpf system call and BTF. A program stays attached as
//! long as what is given here lives.

use std::io;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType, tc};
use aya::{Ebpf, EbpfLoader};

use crate::settings::{COUNTS, CoreSettings, Counts, LinkState, SETTINGS, STATE, with_busy};

mod constants;
mod hierarchy;
mod tickets;

use constants::Constants;

pub use hierarchy::Hierarchy;
pub use tickets::Tickets;

mod objects {
    //! Compiled by `build.rs`.

    /// An object, where it can be read as words of 64 bits.
    #[repr(C, align(8))]
    #[allow(dead_code, reason = "where clang is missing, there is no object")]
    struct Aligned<const N: usize>([u8; N]);

    include!(concat!(env!("OUT_DIR"), "/objects.rs"));
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// It is not part of this build.
    #[error("the tc program `{0}` is not part of this build; install clang and build again")]
    NotBuilt(&'static str),
    /// The kernel refuses the object.
    #[error(
        "the kernel does not load `{program}`: {cause}; it needs CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and a kernel with bpf() \
         and BTF"
    )]
    Load {
        /// Which.
        program: &'static str,
        /// The loader's words, and the kernel's.
        cause: String,
    },
    /// The kernel refuses the program, or to attach it.
    #[error("the kernel does not run `{program}`: {cause}")]
    Program {
        /// Which.
        program: &'static str,
        /// The loader's words, and the kernel's.
        cause: String,
    },
    /// The device takes no program.
    #[error("`{device}` takes no tc programs: {cause}")]
    Device {
        /// Its name.
        device: String,
        /// The loader's words.
        cause: String,
    },
    /// A map cannot be read or written.
    #[error("the map `{map}` of a tc program is not accessible: {cause}")]
    Map {
        /// Which.
        map: &'static str,
        /// The loader's words.
        cause: MapError,
    },
    /// The object is not as this crate expects it: a bug.
    #[error("the object of `{0}` does not hold what it should; build again")]
    Missing(&'static str),
}

/// How lines of the verifier begin that stand behind its reason.
const VERIFIER_SUMS: [&str; 4] = ["verification time", "stack depth", "processed ", "peak_states"];

/// An error with its causes.
fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    // Some repeat their cause in their own words.
    causes.map(ToString::to_string).fold(error.to_string(), |words, cause| {
        if words.contains(&cause) { words } else { format!("{words}: {cause}") }
    })
}

/// Why the kernel refuses a program, in one line. What its verifier said stands in the log at the level `debug`.
fn refusal(name: &str, error: &ProgramError) -> String {
    let ProgramError::LoadError { io_error, verifier_log } = error else { return words(error) };
    tracing::debug!(program = name, %verifier_log, "the verifier refuses a program");
    if io_error.kind() == io::ErrorKind::PermissionDenied {
        return format!("{io_error}; it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN");
    }
    let said = verifier_log.to_string();
    let reason = said.lines().rev().find(|line| !VERIFIER_SUMS.iter().any(|sum| line.starts_with(sum)));
    format!("{io_error}; the verifier says: {}", reason.unwrap_or("nothing"))
}

/// Which of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The core of CSFQ and MCSFQ.
    Core,
    /// The core of HCSFQ, for so many customers.
    Hierarchy(u32),
    /// TRED with a ticket exchange.
    Tickets,
    /// Classes of flows.
    Flows,
    /// Classes of prefixes.
    Prefixes,
    /// What tests and measurements use.
    Check,
}

impl Object {
    /// Its bytes, if it was compiled, and the name of its source.
    fn embedded(self) -> (Option<&'static [u8]>, &'static str) {
        match self {
            Self::Core => (objects::CSFQ, "csfq"),
            Self::Hierarchy(_) => (objects::HCSFQ, "hcsfq"),
            Self::Tickets => (objects::TRED, "tred"),
            Self::Flows => (objects::FLOWS, "flows"),
            Self::Prefixes => (objects::PREFIXES, "prefixes"),
            Self::Check => (objects::CHECK, "check"),
        }
    }

    /// Loads it, with `test_hook` as documented in `bpf/core.h`; that is for tests only.
    ///
    /// # Errors
    /// If it is not part of this build, or the kernel refuses.
    pub fn load(self, test_hook: bool) -> Result<Ebpf, BpfError> {
        let mut loader = EbpfLoader::new();
        let hook = u32::from(test_hook);
        if matches!(self, Self::Core | Self::Hierarchy(_) | Self::Tickets) {
            loader.override_global("test_hook", &hook, true);
        }
        if let Self::Hierarchy(customers) = self {
            loader.map_max_entries("customers", customers);
            loader.map_max_entries("weights", customers.saturating_mul(2));
        }
        let (embedded, program) = self.embedded();
        let bytes = embedded.ok_or(BpfError::NotBuilt(program))?;
        loader.load(bytes).map_err(|error| BpfError::Load { program, cause: words(&error) })
    }
}

/// The program `name` of an object, accepted by the kernel's verifier.
///
/// # Errors
/// If there is none, or the kernel refuses it.
pub fn program<'a>(object: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SchedClassifier, BpfError> {
    let program = object.program_mut(name).ok_or(BpfError::Missing(name))?;
    let failed = |error: ProgramError| BpfError::Program { program: name, cause: refusal(name, &error) };
    let program: &mut SchedClassifier = program.try_into().map_err(failed)?;
    if program.fd().is_err() {
        program.load().map_err(failed)?;
    }
    Ok(program)
}

/// Attaches the program `name` at the egress of `device`, in the network namespace of the calling thread, until the object is
/// dropped.
fn attach(object: &mut Ebpf, name: &'static str, device: &str) -> Result<(), BpfError> {
    match tc::qdisc_add_clsact(device) {
        Ok(()) => (),
        // From Linux 6.6 on programs need no clsact; there, or where it stands already, attaching decides.
        Err(tc::TcError::NetlinkError(_) | tc::TcError::AlreadyAttached) => (),
        Err(cause) => {
            return Err(BpfError::Device { device: device.to_owned(), cause: cause.to_string() });
        }
    }
    let program = program(object, name)?;
    let attached = program.attach(device, TcAttachType::Egress);
    attached.map(drop).map_err(|error| BpfError::Program { program: name, cause: words(&error) })
}

/// Takes programs away from the egress of `device` that a process left there which was killed. Before Linux 6.6 a program is a filter,
/// which stays; from then on it goes with its process, and there is nothing to do.
pub fn detach_left(device: &str) {
    for name in ["csfq", "hcsfq", "tred", "flow_class", "prefix_class"] {
        // `NotFound` is the rule, and what else fails will fail again where it is reported.
        let _ = tc::qdisc_detach_program(device, TcAttachType::Egress, name);
    }
}

fn map<T>(object: &mut Ebpf, map: &'static str) -> Result<T, BpfError>
where
    T: TryFrom<aya::maps::Map, Error = MapError>,
{
    let taken = object.take_map(map).ok_or(BpfError::Missing(map))?;
    T::try_from(taken).map_err(|cause| BpfError::Map { map, cause })
}

/// What gives a program other constants.
pub type Setter<'a, T> = Box<dyn FnMut(&T) -> Result<(), BpfError> + 'a>;

/// A CSFQ or MCSFQ core.
pub struct Core {
    object: Ebpf,
    settings: Constants<{ 1 + 2 * SETTINGS }>,
    link: Array<MapData, [u64; STATE]>,
    counts: PerCpuArray<MapData, [u64; COUNTS]>,
}

impl Core {
    /// Loads a core with these constants; it is not attached yet.
    ///
    /// # Errors
    /// If it is not part of this build, or the kernel refuses.
    pub fn load(settings: &CoreSettings) -> Result<Self, BpfError> {
        Self::load_with(settings, false)
    }

    /// As [`Self::load`]; with `test_hook` each packet brings its time and random number.
    ///
    /// # Errors
    /// As there.
    pub fn load_with(settings: &CoreSettings, test_hook: bool) -> Result<Self, BpfError> {
        let mut object = Object::Core.load(test_hook)?;
        program(&mut object, "csfq")?;
        let mut core = Self {
            settings: Constants::of(&mut object)?,
            link: map(&mut object, "link")?,
            counts: map(&mut object, "counts")?,
            object,
        };
        core.set(settings)?;
        core.link
            .set(0, settings.initial_state(), 0)
            .map_err(|cause| BpfError::Map { map: "link", cause })?;
        Ok(core)
    }

    /// Puts it at the egress of `device`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, "csfq", device)
    }

    /// New constants; the estimate goes on from what it is. A packet sees all of them or none.
    ///
    /// # Errors
    /// If a map is not accessible.
    pub fn set(&mut self, settings: &CoreSettings) -> Result<(), BpfError> {
        self.settings.set(&settings.words(), &self.counts)
    }

    /// For tests: the program, and what does as [`Self::set`] while it runs.
    ///
    /// # Errors
    /// As [`program`].
    pub fn apart(&mut self) -> Result<(&SchedClassifier, Setter<'_, CoreSettings>), BpfError> {
        let Self { object, settings, counts, .. } = self;
        let set = move |new: &CoreSettings| settings.set(&new.words(), counts);
        Ok((&*program(object, "csfq")?, Box::new(set)))
    }

    /// The estimate as it stands.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn state(&self) -> Result<LinkState, BpfError> {
        let words = self.link.get(&0, 0).map_err(|cause| BpfError::Map { map: "link", cause })?;
        Ok(LinkState::of(&words))
    }

    /// For tests: as if another processor were at the estimate until this is called with `false`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn hold(&mut self, is_held: bool) -> Result<(), BpfError> {
        let failed = |cause| BpfError::Map { map: "link", cause };
        let mut words = self.link.get(&0, 0).map_err(failed)?;
        words[0] = with_busy(words[0], is_held);
        self.link.set(0, words, 0).map_err(failed)
    }

    /// What was counted.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn counts(&self) -> Result<Counts, BpfError> {
        let values = self.counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
        Ok(Counts::sum(values.iter().copied()))
    }

    /// The program, for tests and measurements.
    ///
    /// # Errors
    /// As [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, "csfq")
    }
}

/// The fields that make a flow, as bits of `enum field` in `bpf/flows.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowBy {
    /// Addresses, ports and protocol.
    Five,
    /// The destination address: customers behind the device.
    Destination,
    /// The source address.
    Source,
}

impl FlowBy {
    const fn bits(self) -> u32 {
        match self {
            Self::Five => 1 | 2 | 4 | 8,
            Self::Destination => 2,
            Self::Source => 1,
        }
    }
}

/// What flows are known by: the fields that [`FlowBy`] keeps, the others as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// Source and destination.
    pub addresses: [std::net::IpAddr; 2],
    /// Source and destination port; 0 without.
    pub ports: [u16; 2],
    /// The number of the protocol.
    pub protocol: u8,
}

impl FlowKey {
    /// As `struct flow` of `bpf/flows.c`, with the fields that count.
    fn bytes(&self, by: FlowBy) -> [u8; 40] {
        let mut key = [0; 40];
        for (i, address) in self.addresses.iter().enumerate() {
            if by.bits() >> i & 1 == 1 {
                match address {
                    std::net::IpAddr::V4(v4) => key[16 * i..][..4].copy_from_slice(&v4.octets()),
                    std::net::IpAddr::V6(v6) => key[16 * i..][..16].copy_from_slice(&v6.octets()),
                }
            }
        }
        if by == FlowBy::Five {
            key[32..34].copy_from_slice(&self.ports[0].to_be_bytes());
            key[34..36].copy_from_slice(&self.ports[1].to_be_bytes());
            key[36] = self.protocol;
        }
        let is_v4 = self.addresses.iter().all(std::net::IpAddr::is_ipv4);
        key[37] = if is_v4 { 4 } else { 6 };
        key
    }
}

/// The classifier that gives flows their classes.
pub struct FlowClasses {
    object: Ebpf,
    flows: HashMap<MapData, [u8; 40], u32>,
    by: FlowBy,
}

impl FlowClasses {
    /// Loads it; no flow has a class yet.
    ///
    /// # Errors
    /// If it is not part of this build, or the kernel refuses.
    pub fn load(by: FlowBy) -> Result<Self, BpfError> {
        let mut object = Object::Flows.load(false)?;
        program(&mut object, "flow_class")?;
        let mut fields: Array<MapData, u32> = map(&mut object, "fields")?;
        fields.set(0, by.bits(), 0).map_err(|cause| BpfError::Map { map: "fields", cause })?;
        let flows = map(&mut object, "flows")?;
        Ok(Self { object, flows, by })
    }

    /// Puts it at the egress of `device`, in front of its queue.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, "flow_class", device)
    }

    /// The class of a flow, as [`Tree::class`](crate::weights::Tree::class) names it.
    ///
    /// # Errors
    /// If the map is full (65,536 flows) or not accessible.
    pub fn set(&mut self, flow: &FlowKey, class: u32) -> Result<(), BpfError> {
        let failed = |cause| BpfError::Map { map: "flows", cause };
        self.flows.insert(flow.bytes(self.by), class, 0).map_err(failed)
    }

    /// Forgets a flow. Whether it was known.
    pub fn forget(&mut self, flow: &FlowKey) -> bool {
        self.flows.remove(&flow.bytes(self.by)).is_ok()
    }

    /// The program, for tests and measurements.
    ///
    /// # Errors
    /// As [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, "flow_class")
    }
}

/// An end of a packet: whose address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// That of its source.
    Source,
    /// That of its destination.
    Destination,
}

/// The number of a prefix in the map of `bpf/prefix.h`.
fn insert(
    prefixes: &mut LpmTrie<MapData, [u8; 16], u32>,
    address: std::net::IpAddr,
    length: u8,
    number: u32,
) -> Result<(), BpfError> {
    let (bytes, before) = match address {
        std::net::IpAddr::V4(v4) => (v4.to_ipv6_mapped().octets(), 96),
        std::net::IpAddr::V6(v6) => (v6.octets(), 0),
    };
    let key = Key::new(before + u32::from(length), bytes);
    prefixes.insert(&key, number, 0).map_err(|cause| BpfError::Map { map: "prefixes", cause })
}

/// The classifier that gives prefixes of addresses their classes.
pub struct PrefixClasses {
    object: Ebpf,
    prefixes: LpmTrie<MapData, [u8; 16], u32>,
    dropped: PerCpuArray<MapData, u64>,
}

impl PrefixClasses {
    /// Loads it; no prefix has a class yet. Packets without one have the class `others`, or are dropped where there is none.
    ///
    /// # Errors
    /// If it is not part of this build, or the kernel refuses.
    pub fn load(end: End, others: Option<u32>) -> Result<Self, BpfError> {
        let mut object = Object::Prefixes.load(false)?;
        program(&mut object, "prefix_class")?;
        let mut side: Array<MapData, [u32; 2]> = map(&mut object, "side")?;
        let is_destination = u32::from(end == End::Destination);
        side.set(0, [is_destination, others.unwrap_or(0)], 0)
            .map_err(|cause| BpfError::Map { map: "side", cause })?;
        let (prefixes, dropped) = (map(&mut object, "prefixes")?, map(&mut object, "dropped")?);
        Ok(Self { object, prefixes, dropped })
    }

    /// Puts it at the egress of `device`, in front of its queue.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, "prefix_class", device)
    }

    /// The class of a prefix: of addresses that begin with the first `length` bits of `address`. The longest one decides.
    ///
    /// # Errors
    /// If the map is full (262,144 prefixes) or not accessible.
    pub fn set(&mut self, address: std::net::IpAddr, length: u8, class: u32) -> Result<(), BpfError> {
        insert(&mut self.prefixes, address, length, class)
    }

    /// Packets that were dropped, since neither their prefix nor the others have a class.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn dropped(&self) -> Result<u64, BpfError> {
        let values = self.dropped.get(&0, 0).map_err(|cause| BpfError::Map { map: "dropped", cause })?;
        Ok(values.iter().sum())
    }

    /// The program, for tests and measurements.
    ///
    /// # Errors
    /// As [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, "prefix_class")
    }
}
