//! A flow of web pages during a run: its users, and what is kept of the connections of their seats.

use std::sync::Arc;

use apportion_runtime::connections::Numbers;
use apportion_runtime::source::web::Users;
use apportion_scenario::model::{Flow, Scenario, Source, Transport};

use apportion_scenario::tcp::TcpParams;

use crate::connection::Totals;

/// Initial sequence number of connections. Any will do: sequence numbers are relative.
pub(crate) const ISN: u32 = 1;

/// Sequence numbers between one connection of a seat and the next. More than any window, which ends below 2^30 (RFC 7323 section
/// 2.3), would leave less room for those before it to be recognised as old: three of them are.
const APART: u32 = 1 << 29;

/// A flow of web pages.
#[derive(Debug)]
pub(crate) struct WebFlow {
    pub users: Users,
    /// The first of its connections.
    pub first: u32,
    /// Of its connections: servers send what they have (`TCP_NODELAY`), as the end of an object would wait for acknowledgements.
    pub tcp: Arc<TcpParams>,
    /// Of each connection, where its sequence numbers begin and what those before it did.
    before: Vec<(u32, Totals)>,
}

impl WebFlow {
    /// What earlier users of the connection with this index did.
    pub fn past(&self, index: u32) -> Totals {
        self.before[(index - self.first) as usize].1
    }

    /// Where the sequence numbers of the connection with this index begin.
    pub fn isn(&self, index: u32) -> u32 {
        self.before[(index - self.first) as usize].0
    }

    /// The connection with this index is over, and did this.
    pub fn end(&mut self, index: u32, totals: Totals) {
        let (isn, past) = &mut self.before[(index - self.first) as usize];
        *isn = isn.wrapping_add(totals.goodput as u32).wrapping_add(APART);
        *past += totals;
    }
}

/// Those of a scenario.
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
