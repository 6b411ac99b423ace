//! The core of HCSFQ.

use aya::Ebpf;
use aya::maps::lpm_trie::LpmTrie;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::SchedClassifier;

use super::constants::Constants;
use super::{BpfError, End, Object, Setter, attach, insert, map, program};
use crate::hierarchy::{CUSTOMER, CustomerState, HIERARCHY, HierarchySettings};
use crate::settings::{COUNTS, Counts, LinkState, STATE, with_busy};

const NAME: &str = "hcsfq";

/// An HCSFQ core.
pub struct Hierarchy {
    object: Ebpf,
    end: End,
    settings: Constants<{ 1 + 2 * HIERARCHY }>,
    /// Two weights for each customer, one for each set of constants.
    weights: Array<MapData, [u64; 2]>,
    prefixes: LpmTrie<MapData, [u8; 16], u32>,
    link: Array<MapData, [u64; STATE]>,
    customers: Array<MapData, [u64; CUSTOMER]>,
    counts: PerCpuArray<MapData, [u64; COUNTS]>,
}

impl Hierarchy {
    /// Loads a core with these constants, without attaching it; the address at the `end` of a packet
    /// identifies its customer. All packets belong to the first customer until prefixes are assigned to
    /// others.
    ///
    /// # Errors
    /// If the program is not part of this build, or the kernel refuses it.
    pub fn load(settings: &HierarchySettings, end: End) -> Result<Self, BpfError> {
        Self::load_with(settings, end, false)
    }

    /// Loads a core as [`Self::load`] does; with `test_hook` each packet carries its time and random numbers.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn load_with(settings: &HierarchySettings, end: End, test_hook: bool) -> Result<Self, BpfError> {
        let customers = u32::try_from(settings.customers().len()).unwrap_or(u32::MAX);
        let mut object = Object::Hierarchy(customers).load(test_hook)?;
        program(&mut object, NAME)?;
        let mut core = Self {
            end,
            settings: Constants::of(&mut object)?,
            weights: map(&mut object, "weights")?,
            prefixes: map(&mut object, "prefixes")?,
            link: map(&mut object, "link")?,
            customers: map(&mut object, "customers")?,
            counts: map(&mut object, "counts")?,
            object,
        };
        core.set(settings)?;
        let failed = |cause| BpfError::Map { map: "link", cause };
        core.link.set(0, settings.core.initial_state(), 0).map_err(failed)?;
        Ok(core)
    }

    /// Attaches the core at the egress of `device`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses the program.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, NAME, device)
    }

    /// Sets new constants and weights for the same number of customers; the estimates continue from their
    /// present values. A packet sees all new constants or none.
    ///
    /// # Errors
    /// If a map is not accessible, for example since there are more customers than it was loaded for.
    pub fn set(&mut self, settings: &HierarchySettings) -> Result<(), BpfError> {
        let words = settings.words(self.end == End::Destination);
        let weights = &mut self.weights;
        self.settings.set_with(&words, &self.counts, |slot| write_weights(weights, settings, slot))
    }

    /// For tests: returns the program, and a function that sets constants like [`Self::set`] while the
    /// program runs.
    ///
    /// # Errors
    /// As for [`program`].
    pub fn apart(&mut self) -> Result<(&SchedClassifier, Setter<'_, HierarchySettings>), BpfError> {
        let Self { object, settings, weights, counts, end, .. } = self;
        let set = move |new: &HierarchySettings| {
            let words = new.words(*end == End::Destination);
            settings.set_with(&words, counts, |slot| write_weights(weights, new, slot))
        };
        Ok((&*program(object, NAME)?, Box::new(set)))
    }

    /// Assigns a prefix to a customer, i.e. the addresses that begin with the first `length` bits of
    /// `address`. The longest prefix decides. A number beyond the customers means all others.
    ///
    /// # Errors
    /// If the map is full (262,144 prefixes) or not accessible.
    pub fn set_prefix(
        &mut self,
        address: std::net::IpAddr,
        length: u8,
        customer: u32,
    ) -> Result<(), BpfError> {
        insert(&mut self.prefixes, address, length, customer)
    }

    /// Returns the present estimate of the root.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn state(&self) -> Result<LinkState, BpfError> {
        let words = self.link.get(&0, 0).map_err(|cause| BpfError::Map { map: "link", cause })?;
        Ok(LinkState::of(&words))
    }

    /// Returns the present state of a customer.
    ///
    /// # Errors
    /// If there is no customer of this number, or the map is not accessible.
    pub fn customer(&self, number: u32) -> Result<CustomerState, BpfError> {
        let failed = |cause| BpfError::Map { map: "customers", cause };
        Ok(CustomerState::of(&self.customers.get(&number, 0).map_err(failed)?))
    }

    /// For tests: behaves as if another processor held the estimates, until called with `false`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn hold(&mut self, is_held: bool) -> Result<(), BpfError> {
        let failed = |cause| BpfError::Map { map: "link", cause };
        let mut words = self.link.get(&0, 0).map_err(failed)?;
        words[0] = with_busy(words[0], is_held);
        self.link.set(0, words, 0).map_err(failed)
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn counts(&self) -> Result<Counts, BpfError> {
        let values = self.counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
        Ok(Counts::sum(values.iter().copied()))
    }

    /// Returns the program, for tests and measurements.
    ///
    /// # Errors
    /// As for [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, NAME)
    }
}

/// Writes the weights that belong to the set of constants `slot`.
fn write_weights(
    weights: &mut Array<MapData, [u64; 2]>,
    settings: &HierarchySettings,
    slot: u32,
) -> Result<(), BpfError> {
    let failed = |cause| BpfError::Map { map: "weights", cause };
    let mut numbered = (slot..).step_by(2).zip(settings.weight_words());
    numbered.try_for_each(|(at, words)| weights.set(at, words, 0).map_err(failed))
}
