//! Links of the lab whose queues are in the kernel: all watched links.
//!
//! Each such link has a pair of devices. A stand-in of each packet crosses it: a frame of exactly the charged
//! length, with the number of the packet in its Ethernet address, its class in `skb->priority`, and the label
//! of a core in its IP header. HTB and, for a core, the tc program are at the egress of the first device. The
//! system call that sends a frame reports its drop at once, so that each drop is assigned to its flow, with
//! its reason.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | how a link of a scenario is implemented, or why it cannot be |
//! | `stand_in` | the frames |
//! | `queue` | the queue of one link |

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use apportion_core::param::ParamError;
use apportion_core::units::Bytes;
use apportion_linux::port::pair::{QueuePair, lost_at};
use apportion_live::lab::external::{ExternalQueue, ExternalQueues, Health, QueueBackend};
use apportion_runtime::connections::Numbers;
use apportion_scenario::model::{LinkId, Scenario};

mod plan;
mod queue;
mod stand_in;

use plan::LinkPlan;
use queue::KernelQueue;

/// The minimum of the largest packet size, independent of the scenario: SYNs and ACKs are charged by their
/// own size.
const USUAL: Bytes = Bytes::new(1_500);

/// The kernel as implementation of the queues of watched links.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelQueues;

/// The prefix of the names of devices, before the number of the link.
const NAME: &str = "queue";

/// The first failure of any queue of a run.
type Failure = Arc<OnceLock<String>>;

impl QueueBackend for KernelQueues {
    fn check(&self, scenario: &Scenario) -> Result<(), ParamError> {
        plan::check(scenario)
    }

    fn open(&self, scenario: &Scenario, numbers: &Numbers) -> Result<ExternalQueues, ParamError> {
        let packets = scenario.flows.iter().map(|flow| flow.transport.packet());
        let longest = packets.fold(USUAL, Bytes::max);
        let (failure, mut exits) = (Failure::default(), Vec::new());
        let mut queues: BTreeMap<LinkId, Box<dyn ExternalQueue>> = BTreeMap::new();
        for (id, link) in plan::watched(scenario) {
            let failed = |why: String| ParamError::new(&format!("link.{}.queue", link.name), why);
            let plan = LinkPlan::of(scenario, id, numbers).map_err(failed)?;
            let name = format!("{NAME}{}", id.0);
            let pair = QueuePair::create(&name, longest).map_err(|error| failed(error.to_string()))?;
            exits.push(pair.exit().try_clone_to_owned().map_err(|error| failed(error.to_string()))?);
            let queue = KernelQueue::install(plan, pair, &name, longest, Arc::clone(&failure));
            let queue = queue.map_err(|error| failed(error.to_string()))?;
            queues.insert(id, Box::new(queue));
        }
        Ok(ExternalQueues { queues, health: Box::new(KernelHealth { exits, lost: 0, failure }) })
    }
}

/// The state of the queues of a run.
#[derive(Debug)]
struct KernelHealth {
    exits: Vec<OwnedFd>,
    lost: u64,
    failure: Failure,
}

impl Health for KernelHealth {
    fn lost(&mut self) -> u64 {
        self.lost += self.exits.iter().map(lost_at).sum::<u64>();
        // The devices of the calling thread's namespace; drops of queues are not included.
        let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        self.lost + undelivered(&devices)
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}

/// Returns the number of frames that devices of queues could not deliver to the other end, from /proc/net/dev
/// (proc_net(5)).
fn undelivered(devices: &str) -> u64 {
    let of_device = |line: &str| -> Option<u64> {
        let (name, counters) = line.split_once(':')?;
        let is_queue = name.trim().starts_with(NAME);
        // Eight columns of received traffic, then bytes, packets, errors and drops of sent traffic.
        counters.split_whitespace().nth(8 + 3)?.parse().ok().filter(|_| is_queue)
    };
    devices.lines().filter_map(of_device).sum()
}

#[cfg(test)]
mod tests {
    use super::undelivered;

    #[test]
    fn what_devices_of_queues_lose_is_read() {
        let devices = "Inter-|   Receive                      |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
              lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16\n\
            queue3:     1       2    3    4    5     6          7         8        9      10   11   5    13    14      15         16\n\
            queue3.out: 1       2    3    4    5     6          7         8        9      10   11   2    13    14      15         16\n";
        assert_eq!(undelivered(devices), 7);
    }
}
