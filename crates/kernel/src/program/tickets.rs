//! TRED with a ticket exchange.

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::SchedClassifier;

use super::constants::Constants;
use super::{BpfError, Object, attach, map, program};
use crate::settings::with_busy;
use crate::tickets::{TICKET_COUNTS, TICKET_STATE, TICKETS, TicketCounts, TicketSettings, TicketState};

const NAME: &str = "tred";

/// TRED, with an exchange if its settings have one.
pub struct Tickets {
    object: Ebpf,
    settings: Constants<{ 1 + 2 * TICKETS }>,
    state: Array<MapData, [u64; TICKET_STATE]>,
    counts: PerCpuArray<MapData, [u64; TICKET_COUNTS]>,
}

impl Tickets {
    /// Loads the program with these constants, without attaching it.
    ///
    /// # Errors
    /// If the program is not part of this build, or the kernel refuses it.
    pub fn load(settings: &TicketSettings) -> Result<Self, BpfError> {
        Self::load_with(settings, false)
    }

    /// Loads the program as [`Self::load`] does; with `test_hook` each packet carries its time and random
    /// numbers.
    ///
    /// # Errors
    /// As for [`Self::load`].
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

    /// Attaches the program at the egress of `device`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses the program.
    pub fn attach(&mut self, device: &str) -> Result<(), BpfError> {
        attach(&mut self.object, NAME, device)
    }

    /// Sets new constants; averages continue from their present values, and a new issue rate of an exchange
    /// takes effect over its `issue_window`. The exchange must be present or absent as when the program was
    /// loaded. A packet sees all new constants or none.
    ///
    /// # Errors
    /// If a map is not accessible.
    pub fn set(&mut self, settings: &TicketSettings) -> Result<(), BpfError> {
        self.settings.set(&settings.words(), &self.counts)
    }

    /// Returns the present averages.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn state(&self) -> Result<TicketState, BpfError> {
        Ok(TicketState::of(&self.words()?))
    }

    /// For tests: returns the words of the map `state`, in the order of `struct state` of `bpf/tred.c`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn words(&self) -> Result<[u64; TICKET_STATE], BpfError> {
        self.state.get(&0, 0).map_err(|cause| BpfError::Map { map: "state", cause })
    }

    /// For tests: behaves as if another processor held the averages, until called with `false`.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn hold(&mut self, is_held: bool) -> Result<(), BpfError> {
        let failed = |cause| BpfError::Map { map: "state", cause };
        let mut words = self.state.get(&0, 0).map_err(failed)?;
        words[0] = with_busy(words[0], is_held);
        self.state.set(0, words, 0).map_err(failed)
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// If the map is not accessible.
    pub fn counts(&self) -> Result<TicketCounts, BpfError> {
        let values = self.counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
        Ok(TicketCounts::sum(values.iter().copied()))
    }

    /// Returns the program, for tests and measurements.
    ///
    /// # Errors
    /// As for [`program`].
    pub fn program(&mut self) -> Result<&mut SchedClassifier, BpfError> {
        program(&mut self.object, NAME)
    }
}
