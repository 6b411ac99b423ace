//! A flow of web pages during a run: its users, and the state of the connections of their seats.

use std::sync::Arc;

use apportion_runtime::connections::Numbers;
use apportion_runtime::source::web::Users;
use apportion_scenario::model::{Flow, Scenario, Source, Transport};

use apportion_scenario::tcp::TcpParams;

use crate::connection::Totals;

/// Initial sequence number of connections. Any value works: sequence numbers are relative.
pub(crate) const ISN: u32 = 1;

/// The distance in sequence numbers between one connection of a seat and the next. It exceeds any window,
/// which ends below 2^30 (RFC 7323 section 2.3); a larger distance would leave fewer earlier ones
/// recognisable as old: three of them are.
const APART: u32 = 1 << 29;

/// A flow of web pages.
#[derive(Debug)]
pub(crate) struct WebFlow {
    pub users: Users,
    /// The first connection.
    pub first: u32,
    /// The parameters of its connections: servers send what they have (`TCP_NODELAY`); otherwise the end of
    /// an object would wait for acknowledgements.
    pub tcp: Arc<TcpParams>,
    /// The start of the sequence numbers of each connection, and the totals of earlier ones.
    before: Vec<(u32, Totals)>,
}

impl WebFlow {
    /// The totals of earlier users of the connection with this index.
    pub fn past(&self, index: u32) -> Totals {
        self.before[(index - self.first) as usize].1
    }

    /// The start of the sequence numbers of the connection with this index.
    pub fn isn(&self, index: u32) -> u32 {
        self.before[(index - self.first) as usize].0
    }

    /// Notes that the connection with this index is over, with its totals.
    pub fn end(&mut self, index: u32, totals: Totals) {
        let (isn, past) = &mut self.before[(index - self.first) as usize];
        *isn = isn.wrapping_add(totals.goodput as u32).wrapping_add(APART);
        *past += totals;
    }
}

/// The web flows of a scenario.
pub(crate) fn web_flows(scenario: &Scenario, numbers: &Numbers, seed: u64) -> Vec<WebFlow> {
    let of = |(index, flow): (usize, &Flow)| {
        let (Source::Web(web), Transport::Tcp(tcp)) = (&flow.source, &flow.transport) else { return None };
        let tcp = Arc::new(TcpParams { nagle: false, ..TcpParams::clone(tcp) });
        let members = numbers.members(index);
        let before = vec![(ISN, Totals::default()); members.len()];
        Some(WebFlow { users: Users::new(flow, web, scenario.stop, seed), first: members.start, tcp, before })
    };
    scenario.flows.iter().enumerate().filter_map(of).collect()
}
