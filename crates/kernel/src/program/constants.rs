//! Constants that change while a program runs.
//!
//! They are several words, and one processor may be in the program while another writes them: it would see a part of a change, such as the
//! rate of one file with the limit of another. So the map has two sets of them behind the word that says which one counts. A change is written
//! into the other set, and then into that word: one store, which a program sees or does not. Each run reads that word once.
//!
//! A set is written again at the second change after it counted. Until then all runs must have ended that read it. Each processor counts the runs that it
//! began and ended: when a set ceases to count, those that had begun are noted, and the next change waits until they have ended. Nearly always
//! they have long. A run takes less than a microsecond unless its processor is stopped (a virtual machine, a debugger), so the wait ends after
//! 100 ms; a processor that is stopped longer than that, while two changes are made, may see a part of the second one.
//!
//! Cost: two increments of a word of its own for each run of the program, and three system calls more for a change.

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};

use super::{BpfError, map};
use crate::settings::COUNTS;

const NAME: &str = "settings";

/// What runs are waited for at most, and how often it is looked.
const PATIENCE: Span = Span::from_millis(100);
const PERIOD: Span = Span::from_micros(100);

/// The map `settings` of a program, of `WORDS` = 2 n + 1 words for constants of n.
pub(super) struct Constants<const WORDS: usize> {
    map: Array<MapData, [u64; WORDS]>,
    /// As it stands in the map: which ones count, and both.
    words: [u64; WORDS],
    /// The runs that each processor had begun when the last change came to count.
    begun: Vec<u64>,
}

impl<const WORDS: usize> Constants<WORDS> {
    /// Those of an object, all 0.
    pub fn of(object: &mut Ebpf) -> Result<Self, BpfError> {
        Ok(Self { map: map(object, NAME)?, words: [0; WORDS], begun: Vec::new() })
    }

    /// Whether all runs have ended that had begun when the last change came to count.
    fn have_ended<const N: usize>(&self, counts: &PerCpuArray<MapData, [u64; N]>) -> Result<bool, BpfError> {
        let now = runs(counts)?;
        Ok(self.begun.iter().zip(now).all(|(begun, (_, ended))| ended >= *begun))
    }

    /// Makes `constants` those that count.
    pub fn set<const N: usize>(
        &mut self,
        constants: &[u64],
        counts: &PerCpuArray<MapData, [u64; N]>,
    ) -> Result<(), BpfError> {
        self.set_with(constants, counts, |_| Ok(()))
    }

    /// The same with what `beside` writes elsewhere for the constants of the number that it is given, 0 or 1.
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

    /// Writes all words, of which those that are the same are the same all the time.
    fn write(&mut self) -> Result<(), BpfError> {
        self.map.set(0, self.words, 0).map_err(|cause| BpfError::Map { map: NAME, cause })
    }
}

/// The runs that each processor began and ended.
fn runs<const N: usize>(counts: &PerCpuArray<MapData, [u64; N]>) -> Result<Vec<(u64, u64)>, BpfError> {
    let all = counts.get(&0, 0).map_err(|cause| BpfError::Map { map: "counts", cause })?;
    // Behind what is counted of packets.
    let of = |words: &[u64; N]| words.get(COUNTS - 2..)?.first_chunk().map(|[begun, ended]| (*begun, *ended));
    Ok(all.iter().filter_map(of).collect())
}
