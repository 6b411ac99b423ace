//! Links of the lab whose queues are the kernel's: all that are watched.
//!
//! Such a link has a pair of devices. A stand-in of each packet crosses it: a frame of exactly the charged length with the number of the
//! packet in its Ethernet address, its class in `skb->priority`, and the label of a core where its IP header has it. At
//! the egress of the first device stand HTB and, for a core, the tc program. What these drop the call that sends reports at once, so that each drop is
//! of its flow, and by its reason.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | how a link of a scenario is carried out, or why it cannot be |
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

/// The largest packet whatever a scenario says: SYNs and acknowledgements are charged as they are.
const USUAL: Bytes = Bytes::new(1_500);

/// The kernel as what carries out the queues of watched links.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelQueues;

/// How the devices are called, before the number of the link.
const NAME: &str = "queue";

/// What went wrong, of all queues of a run.
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

/// How the queues of a run are.
#[derive(Debug)]
struct KernelHealth {
    exits: Vec<OwnedFd>,
    lost: u64,
    failure: Failure,
}

impl Health for KernelHealth {
    fn lost(&mut self) -> u64 {
        self.lost += self.exits.iter().map(lost_at).sum::<u64>();
        // Of the calling thread's namespace; what a queue drops is not in it.
        let devices = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        self.lost + undelivered(&devices)
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}

/// Frames that devices of queues could not hand to the other end, by /proc/net/dev (proc_net(5)).
fn undelivered(devices: &str) -> u64 {
    let of_device = |line: &str| -> Option<u64> {
        let (name, counters) = line.split_once(':')?;
        let is_queue = name.trim().starts_with(NAME);
        // Eight columns of what came in, then bytes, packets, errors and drops of what was sent.
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
