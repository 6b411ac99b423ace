//! TRED with a ticket exchange.

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::SchedClassifier;

use super::constants::Constants;
use super::{BpfError, Object, attach, map, program};
use crate::settings::with_busy;
use crate::tickets::{TICKET_COUNTS, TICKET_STATE, TICKETS, TicketCounts, TicketSettings, TicketState};

const NAME: &str = "tred";

/// A queue by TRED, with an exchange where its settings have one.
pub struct Tickets {
    object: Ebpf,
    settings: Constants<{ 1 + 2 * TICKETS }>,
    state: Array<MapData, [u64; TICKET_STATE]>,
    counts: PerCpuArray<MapData, [u64; TICKET_COUNTS]>,
}

impl Tickets {
    /// Loads it with these constants; it is not attached yet.
    ///
    /// # Errors
    /// If it is not part of this build, or the kernel refuses.
    pub fn load(settings: &TicketSettings) -> Result<Self, BpfError> {
        Self::load_with(settings, false)
    }

    /// As [`Self::load`]; with `test_hook` each packet brings its time and random numbers.
    ///
    /// # Errors
    /// As there.
    pub fn load_with(settings: &TicketSettings, test_hook: bool) -> Result<Self, BpfError> {
        let mut object = Object::Tickets.load(test_hook)?;
        program(&mut object, NAME)?;
        let mut tickets = Self {
            settings: Constants::of(&mut object)?,
            state: map(&mut object, "state")?,
            counts: map(&mut object, "counts")?,
            object,
        };
        tickets.set(settings)?;
        let failed = |cause| BpfError::Map { map: "state", cause };
        tickets.state.set(0, settings.initial_state(), 0).map_err(failed)?;
        Ok(tickets)
    }

    /// Puts it at the egress of `device`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, NAME, device)
    }

    /// New constants; averages go on from what they are, and what is issued to an exchange takes effect with its `issue_window`. An
    /// exchange must have been there, or not, when it was loaded. A packet sees all of them or none.
    ///
    /// # Errors
    /// If a map is not accessible.
    pub fn set(&mut self, settings: &TicketSettings) -> Result<(), BpfError> {
        self.settings.set(&settings.words(), &self.counts)
    }

    /// Its averages as they stand.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn state(&self) -> Result<TicketState, BpfError> {
        Ok(TicketState::of(&self.words()?))
    }

    /// For tests: the words of the map `state`, in the order of `struct state` of `bpf/tred.c`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn words(&self) -> Result<[u64; TICKET_STATE], BpfError> {
        self.state.get(&0, 0).map_err(|cause| BpfError::Map { map: "state", cause })
    }

    /// For tests: as if another processor were at the averages until this is called with `false`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn hold(&mut self, is_held: bool) -> Result<(), BpfError> {
        let failed = |cause| BpfError::Map { map: "state", cause };
        let mut words = self.state.get(&0, 0).map_err(failed)?;
        words[0] = with_busy(words[0], is_held);
        self.state.set(0, words, 0).map_err(failed)
    }

    /// What was counted.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn counts(&self) -> Result<TicketCounts, BpfError> {
        let values = self.counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
        Ok(TicketCounts::sum(values.iter().copied()))
    }

    /// The program, for tests and measurements.
    ///
    /// # Errors
    /// As [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, NAME)
    }
}
