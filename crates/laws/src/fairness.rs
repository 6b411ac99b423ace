//! Fairness: whether backlogged flows are served in proportion to their weights.

use apportion_core::system::LinkContext;
use apportion_core::units::{Bytes, Rate, Time, Weight};
use apportion_core::{DropReason, FlowId, Queue, SimplePacket, Sink};

use crate::sequence::Op;
use crate::{Law, Violation};

/// Weights of the flows, and the packet size of each in bytes: equal weights, unequal weights, and one heavy
/// flow among light ones, with the large packets in the light flows and in the heavy one.
const TRIALS: [(&[f64], &[u64]); 4] = [
    (&[1.0, 1.0], &[1_500, 1_500]),
    (&[1.0, 1.0, 1.0, 1.0], &[40, 1_500, 700, 333]),
    (&[1.0, 2.0, 5.0], &[1_500, 40, 700]),
    (&[10.0, 1.0, 1.0, 1.0, 1.0, 1.0], &[100, 1_500, 1_500, 1_500, 40, 40]),
];

/// Number of packets served in each trial.
const SERVICES: usize = 2_000;

/// Tolerance for integer rounding of virtual time, in bytes.
const ROUNDING: f64 = 1e-3;

struct Lost(Option<u32>);

impl Sink<SimplePacket> for Lost {
    fn dropped(&mut self, _: Time, packet: SimplePacket, _: DropReason) {
        self.0 = Some(packet.flow.0);
    }
    fn marked(&mut self, _: Time, _: &SimplePacket) {}
}

/// Checks the bound with flows that always have 100 packets waiting.
pub fn check<Q: Queue<SimplePacket>>(
    build: &impl Fn(&LinkContext<'_>) -> Q,
    quantum: Bytes,
) -> Result<(), Box<Violation>> {
    TRIALS.iter().try_for_each(|(weights, sizes)| trial(build, quantum, weights, sizes))
}

fn trial<Q: Queue<SimplePacket>>(
    build: &impl Fn(&LinkContext<'_>) -> Q,
    quantum: Bytes,
    weights: &[f64],
    sizes: &[u64],
) -> Result<(), Box<Violation>> {
    let of_link: Vec<Weight> = weights.iter().filter_map(|&weight| Weight::new(weight)).collect();
    let mut queue =
        build(&LinkContext { weights: &of_link, ..LinkContext::new(Rate::from_mbit(10), 1, "link") });
    let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = sizes.iter().copied().max().unwrap_or_default() as f64;
    let mut sink = Lost(None);
    let mut ops = Vec::new();
    let fail = |step: usize, what: String, mut ops: Vec<Op>| {
        ops.truncate(step + 1);
        let what = format!("{what}; weights are {weights:?}");
        Err(Box::new(Violation { law: Law::Fairness, step, what, ops }))
    };
    let packet = |id: usize, flow: usize| {
        let op = Op::Enqueue { flow: flow as u32, size: sizes[flow], capable: false };
        (op, SimplePacket::new(id as u32, FlowId(flow as u32), Bytes::new(sizes[flow])))
    };
    for _ in 0..100 {
        for flow in 0..weights.len() {
            let (op, packet) = packet(ops.len(), flow);
            queue.enqueue(Time::ZERO, packet, &mut sink);
            ops.push(op);
        }
    }
    let mut served = vec![0.0; weights.len()];
    // The minimum lead of each flow over each other flow since the start, in bytes by weight.
    let mut least = vec![vec![0.0_f64; weights.len()]; weights.len()];
    for _ in 0..SERVICES {
        let step = ops.len();
        ops.push(Op::Dequeue);
        let Some(sent) = queue.dequeue(Time::ZERO, &mut sink) else {
            return fail(step, "no packet came from backlogged flows".to_owned(), ops);
        };
        if let Some(flow) = sink.0 {
            return fail(step, format!("a packet of flow {flow} was dropped; give it a larger buffer"), ops);
        }
        let flow = sent.flow.index();
        served[flow] += sent.size.get() as f64;
        for (f, m) in (0..weights.len()).flat_map(|f| (0..weights.len()).map(move |m| (f, m))) {
            let ahead = served[f] / weights[f] - served[m] / weights[m];
            least[f][m] = least[f][m].min(ahead);
            let bound = quantum.get() as f64 / smallest + largest / weights[f] + largest / weights[m];
            let apart = ahead - least[f][m];
            if apart > bound + ROUNDING {
                let what = format!(
                    "flow {f} got {apart:.0} B per weight more than flow {m} while both were backlogged; the bound is \
                     {bound:.0}"
                );
                return fail(step, what, ops);
            }
        }
        let (op, packet) = packet(ops.len(), flow);
        queue.enqueue(Time::ZERO, packet, &mut sink);
        ops.push(op);
    }
    Ok(())
}
