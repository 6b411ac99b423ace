//! The release of the kernel, and the CPU time of the machine and of a thread, from `/proc` (proc(5)).

use std::fs;

use apportion_core::units::Span;

/// The release of the kernel, for example `6.1.0-28-amd64`; `None` without `/proc`.
#[must_use]
pub fn kernel_release() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/osrelease").ok()?.trim().to_owned())
}

/// CPU time of the machine since boot and of this process since its start, over all cores, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    total: u64,
    programs: u64,
    interrupts: u64,
    stolen: u64,
    own: u64,
}

/// Shares of CPU time over all cores. The rest was idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShares {
    /// This process.
    pub own: f64,
    /// Other processes.
    pub others: f64,
    /// Interrupts, and the network code that runs after them, for any process.
    pub interrupts: f64,
    /// The hypervisor, for other virtual machines.
    pub stolen: f64,
}

impl CpuTime {
    /// CPU time until now; `None` without `/proc`.
    #[must_use]
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let ticks = machine.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let ticks: Vec<u64> = ticks.map(|ticks| ticks.parse().ok()).collect::<Option<_>>()?;
        // The following fields, of guests, are included in the times of programs.
        let &[user, nice, system, idle, wait, hard, soft, stolen, ..] = &ticks[..] else { return None };
        // The name of the program may contain any character. The 12th and 13th field after it are user and
        // system time.
        let mut fields = process.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (own_user, own_system) = (next()?, next()?);
        let programs = user + nice + system;
        let interrupts = hard + soft;
        let total = programs + interrupts + stolen + idle + wait;
        Some(Self { total, programs, interrupts, stolen, own: own_user + own_system })
    }

    /// Shares of the time since `before`; `None` if no time has passed.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<CpuShares> {
        let total = self.total.saturating_sub(before.total);
        let share = |ticks: u64| ticks as f64 / total as f64;
        let own = self.own.saturating_sub(before.own);
        (total > 0).then(|| CpuShares {
            own: share(own.min(total)),
            others: share(self.programs.saturating_sub(before.programs).saturating_sub(own)),
            interrupts: share(self.interrupts.saturating_sub(before.interrupts)),
            stolen: share(self.stolen.saturating_sub(before.stolen)),
        })
    }
}

/// The scheduler's counts of a thread since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    ran: Span,
    waited: Span,
}

/// Shares of a thread's time. The rest it slept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadShares {
    /// The thread had a core.
    pub ran: f64,
    /// The thread could have run, but no core was free.
    pub waited: f64,
}

impl ThreadTime {
    /// The counts of the calling thread until now; `None` if the kernel does not count (CONFIG_SCHED_INFO).
    #[must_use]
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// Time with a core and time of waiting for one, in nanoseconds, then the number of time slices
    /// (Documentation/scheduler/sched-stats.rst).
    fn parse(text: &str) -> Option<Self> {
        let mut numbers =
            text.split_ascii_whitespace().map(|number| number.parse().ok().map(Span::from_nanos));
        let (ran, waited) = (numbers.next()??, numbers.next()??);
        Some(Self { ran, waited })
    }

    /// Shares of `span`, since `before`; `None` if `span` is zero.
    #[must_use]
    pub fn since(&self, before: &Self, span: Span) -> Option<ThreadShares> {
        let share = |now: Span, then: Span| now.saturating_sub(then).as_secs_f64() / span.as_secs_f64();
        (span > Span::ZERO).then(|| ThreadShares {
            ran: share(self.ran, before.ran),
            waited: share(self.waited, before.waited),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU times: of the machine in the order of proc(5), and of a process with an odd name.
    fn at(machine: &str, own: &str) -> CpuTime {
        let process = format!("7 (a) b (c) R 1 7 7 0 -1 0 1 2 3 4 {own} 0 0 20 0 1 0 5 6 7\n");
        CpuTime::parse(&format!("cpu  {machine} 0 0\ncpu0 1 2 3\n"), &process).unwrap()
    }

    #[test]
    fn time_is_divided_among_who_took_it() {
        let before = at("100 10 50 1000 5 1 4 20", "30 10");
        // 200 ticks: 60 + 10 + 10 of programs, of which 30 + 10 of this one; 90 + 10 idle; 2 + 0; 18.
        let after = at("160 20 60 1090 15 3 4 38", "60 20");
        let shares = after.since(&before).unwrap();
        assert_eq!(shares, CpuShares { own: 0.2, others: 0.2, interrupts: 0.01, stolen: 0.09 });
        assert_eq!(before.since(&before), None);
    }

    #[test]
    fn a_thread_ran_waited_or_slept() {
        let at = |text| ThreadTime::parse(text).unwrap();
        let (before, after) = (at("1000000 500000 7\n"), at("41000000 10500000 9\n"));
        let shares = after.since(&before, Span::from_millis(80));
        assert_eq!(shares, Some(ThreadShares { ran: 0.5, waited: 0.125 }));
        assert_eq!(after.since(&before, Span::ZERO), None);
        assert_eq!((ThreadTime::parse(""), ThreadTime::parse("1 x 2")), (None, None));
    }

    #[test]
    fn what_is_no_such_file_is_none() {
        assert_eq!(CpuTime::parse("", ""), None);
        assert_eq!(CpuTime::parse("cpu  1 2 3 4\n", "1 (x) R 1"), None);
        assert_eq!(CpuTime::parse("cpu  1 2 3 4 5 6 7 8 9 10\n", "1 (x) R 1 2 3"), None);
    }

    #[test]
    fn this_machine_has_both() {
        assert!(CpuTime::read().is_some());
        assert!(kernel_release().is_some_and(|release| release.contains('.') && !release.contains('\n')));
    }
}
