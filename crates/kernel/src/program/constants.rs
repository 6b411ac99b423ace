//! Constants that change while a program runs.
//!
//! Constants consist of several words, and one processor may run the program while another writes them: the
//! program would see part of a change, such as the rate of one file with the limit of another. The map
//! therefore has two sets of constants after the word that selects the active one. A change is written to the
//! inactive set and then activated by that word: a single store, which a program sees or does not see. Each
//! run reads the word once.
//!
//! The second change after a set was active overwrites it. By then all runs that read the set must have
//! ended. Each processor counts the runs that it began and ended: when a set becomes inactive, the runs begun
//! so far are noted, and the next change waits until they have ended, which nearly always is the case at
//! once. A run takes less than a microsecond unless its processor is stopped (a virtual machine, a debugger),
//! so the wait ends after 100 ms; a processor that is stopped longer, while two changes are made, may see
//! part of the second one.
//!
//! Cost: two increments of a per-processor word for each run of the program, and three additional system
//! calls for a change.

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};

use super::{BpfError, map};
use crate::settings::COUNTS;

const NAME: &str = "settings";

/// The maximum wait for runs to end, and the interval between checks.
const PATIENCE: Span = Span::from_millis(100);
const PERIOD: Span = Span::from_micros(100);

/// The map `settings` of a program, with `WORDS` = 2 n + 1 words for n words of constants.
pub(super) struct Constants<const WORDS: usize> {
    map: Array<MapData, [u64; WORDS]>,
    /// The contents of the map: the number of the active set, and both sets.
    words: [u64; WORDS],
    /// The runs that each processor had begun at the last change.
    begun: Vec<u64>,
}

impl<const WORDS: usize> Constants<WORDS> {
    /// Returns the constants of an object, all 0.
    pub fn of(object: &mut Ebpf) -> Result<Self, BpfError> {
        Ok(Self { map: map(object, NAME)?, words: [0; WORDS], begun: Vec::new() })
    }

    /// Whether all runs have ended that had begun at the last change.
    fn have_ended<const N: usize>(&self, counts: &PerCpuArray<MapData, [u64; N]>) -> Result<bool, BpfError> {
        let now = runs(counts)?;
        Ok(self.begun.iter().zip(now).all(|(begun, (_, ended))| ended >= *begun))
    }

    /// Makes `constants` the active constants.
    pub fn set<const N: usize>(
        &mut self,
        constants: &[u64],
        counts: &PerCpuArray<MapData, [u64; N]>,
    ) -> Result<(), BpfError> {
        self.set_with(constants, counts, |_| Ok(()))
    }

    /// Sets constants as [`Self::set`] does, after `beside` has written elsewhere the data for the set of the
    /// given number, 0 or 1.
    pub fn set_with<const N: usize>(
        &mut self,
        constants: &[u64],
        counts: &PerCpuArray<MapData, [u64; N]>,
        beside: impl FnOnce(u32) -> Result<(), BpfError>,
    ) -> Result<(), BpfError> {
        let clock = Clock::start();
        while !self.have_ended(counts)? && clock.now() < Time::ZERO + PATIENCE {
            pause(PERIOD);
        }
        let spare = 1 - self.words[0].min(1);
        let place = self.words.iter_mut().skip(1 + spare as usize * (WORDS / 2));
        place.zip(constants).for_each(|(word, new)| *word = *new);
        self.write()?;
        beside(spare as u32)?;
        self.words[0] = spare;
        self.write().inspect_err(|_| self.words[0] = 1 - spare)?;
        self.begun = runs(counts)?.into_iter().map(|(begun, _)| begun).collect();
        Ok(())
    }

    /// Writes all words; writing words that do not change has no effect.
    fn write(&mut self) -> Result<(), BpfError> {
        self.map.set(0, self.words, 0).map_err(|cause| BpfError::Map { map: NAME, cause })
    }
}

/// Returns the runs that each processor began and ended.
fn runs<const N: usize>(counts: &PerCpuArray<MapData, [u64; N]>) -> Result<Vec<(u64, u64)>, BpfError> {
    let all = counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
    // These words follow the packet counters.
    let of = |words: &[u64; N]| words.get(COUNTS - 2..)?.first_chunk().map(|[begun, ended]| (*begun, *ended));
    Ok(all.iter().filter_map(of).collect())
}
