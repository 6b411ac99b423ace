//! GPS: Parekh, Gallager 1993, section II, as a fluid over time, without virtual time.

/// What the fluid serves of one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// When the fluid begins the packet, in the unit of the arrivals.
    pub start: f64,
    /// When the fluid has served the packet.
    pub finish: f64,
}

/// The fluid of a link that serves a unit of size in a unit of time.
#[derive(Clone, Debug)]
pub struct Gps {
    /// Per packet, in the order of the arrivals.
    pub served: Vec<Served>,
    /// Times at which the rates change, and what each flow has got until then.
    points: Vec<(f64, Vec<f64>)>,
}

impl Gps {
    /// Serves `arrivals`: time, flow and size, by time.
    #[must_use]
    pub fn new(weight: &[f64], arrivals: &[(f64, usize, f64)]) -> Self {
        let mut queue: Vec<Vec<(usize, f64)>> = vec![Vec::new(); weight.len()];
        let mut served = vec![Served { start: f64::NAN, finish: f64::NAN }; arrivals.len()];
        let mut got = vec![0.0; weight.len()];
        let (mut now, mut points, mut next) = (0.0, Vec::new(), 0);
        loop {
            points.push((now, got.clone()));
            let backlogged: Vec<usize> = (0..weight.len()).filter(|&flow| !queue[flow].is_empty()).collect();
            let sum: f64 = backlogged.iter().map(|&flow| weight[flow]).sum();
            let ends = backlogged.iter().map(|&flow| now + queue[flow][0].1 * sum / weight[flow]);
            let arrival = arrivals.get(next).map_or(f64::INFINITY, |arrival| arrival.0);
            let until = ends.fold(arrival, f64::min);
            if until.is_infinite() {
                return Self { served, points };
            }
            for flow in backlogged {
                let (id, left) = &mut queue[flow][0];
                let part = (until - now) * weight[flow] / sum;
                got[flow] += part;
                *left -= part;
                if *left < 1e-6 {
                    served[*id].finish = until;
                    queue[flow].remove(0);
                    if let Some(&(id, _)) = queue[flow].first() {
                        served[id].start = until;
                    }
                }
            }
            now = until;
            while let Some(&(_, flow, size)) = arrivals.get(next).filter(|arrival| arrival.0 <= now) {
                if queue[flow].is_empty() {
                    served[next].start = now;
                }
                queue[flow].push((next, size));
                next += 1;
            }
        }
    }

    /// What `flow` has got until `time`.
    #[must_use]
    pub fn got(&self, flow: usize, time: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= time);
        let before = &self.points[after - 1];
        let Some(after) = self.points.get(after) else { return before.1[flow] };
        let part = (time - before.0) / (after.0 - before.0);
        before.1[flow] + part * (after.1[flow] - before.1[flow])
    }
}
