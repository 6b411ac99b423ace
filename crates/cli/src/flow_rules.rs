//! Flow rules of a running gateway, for a router before it that does not speak SF-FC: as commands of Linux `tc` or
//! nftables, or as BGP flow specifications for the API of ExaBGP.
//!
//! Each line is one command. A rule is printed when it appears or its rate changes by a tenth, and withdrawn when the
//! gateway no longer has it, when the gateway stops, and at the end. Nftables also ends it without us: its elements
//! have the lifetime of the rule, and are printed again when the rule was renewed.
//!
//! Only numbers and parsed addresses get into a line, whatever the gateway answers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use apportion::gateway::Gateway;
use serde_json::Value;

use crate::arguments::RuleFormat;
use crate::interrupt::Interrupt;
use crate::output;

/// The time between requests to the gateway, which changes rules as often.
const POLL: Duration = Duration::from_secs(1);
/// Maximum of rules, as in the gateway; more would be from another program.
const MAX_RULES: usize = 256;
/// The renewal, in seconds, from which an element of nftables is printed again. Chosen: half of the lifetime. Each
/// time its token bucket is full again.
const RENEWAL: u64 = 5;
/// Size of token buckets: this time at the rate of the rule, and at least these bytes. Chosen: an interval of SF-FC,
/// and ten full packets.
const BURST: f64 = 0.05;
const LEAST_BURST: u64 = 15_000;
/// The preferences of tc filters of IPv4 and IPv6, which are ours alone: the UDP port of reports, and the next number.
const PREFERENCES: [u16; 2] = [57_332, 57_333];

/// Prints rules until an interrupt, or until the gateway stops.
///
/// # Errors
/// The gateway does not answer, or the output cannot be written.
pub fn print(gateway: &Gateway, format: RuleFormat, device: Option<&str>) -> anyhow::Result<()> {
    let mut table = Table::new(format, device.unwrap_or_default());
    let interrupt = Interrupt::listen()?;
    let mut rules = read(&gateway.stats()?)?;
    output::print(&table.begin())?;
    while !interrupt.cancel.is_cancelled() {
        output::print(&table.update(&rules))?;
        std::thread::park_timeout(POLL);
        rules = match gateway.stats().map_err(anyhow::Error::from).and_then(|answer| read(&answer)) {
            Ok(rules) => rules,
            Err(error) => {
                output::print(&table.update(&[]))?;
                return Err(error);
            }
        };
    }
    output::print(&table.update(&[]))?;
    Ok(())
}

/// The addresses, protocol and ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    addresses: [IpAddr; 2],
    ports: [u16; 2],
    is_tcp: bool,
}

/// A limit of a flow.
#[derive(Clone, Copy, Debug)]
struct Rule {
    flow: Flow,
    /// In bytes a second, at least 1.
    rate: u64,
    /// The time until it ends, in s, rounded up.
    left: u64,
}

/// The rules in statistics; flows without ports of TCP or UDP have none.
fn read(statistics: &str) -> anyhow::Result<Vec<Rule>> {
    let statistics: Value = serde_json::from_str(statistics).context("the gateway's answer is not JSON")?;
    let rules = statistics["flow_rules"].as_array().context("the gateway has no flow rules: it is older")?;
    Ok(rules.iter().take(MAX_RULES).filter_map(of_json).collect())
}

fn of_json(rule: &Value) -> Option<Rule> {
    let address = |name: &str| rule[name].as_str()?.parse::<IpAddr>().ok();
    let port = |index: usize| u16::try_from(rule["ports"][index].as_u64()?).ok();
    let addresses = [address("source")?, address("destination")?];
    let is_tcp = match rule["protocol"].as_u64()? {
        6 => true,
        17 => false,
        _ => return None,
    };
    let flow = Flow { addresses, ports: [port(0)?, port(1)?], is_tcp };
    let (bits, left) = (rule["bits_per_second"].as_u64()?, rule["seconds_left"].as_f64()?);
    let is_valid = addresses[0].is_ipv4() == addresses[1].is_ipv4() && left >= 0.0;
    is_valid.then_some(Rule { flow, rate: bits.div_ceil(8).max(1), left: left.ceil() as u64 })
}

/// A rule that the router has.
#[derive(Clone, Copy, Debug)]
struct Shown {
    rate: u64,
    /// The second in which it ends unless it is printed again.
    ends: u64,
    /// The number of its tc filter.
    handle: u32,
}

/// The rules that the router has.
struct Table<'a> {
    format: RuleFormat,
    device: &'a str,
    shown: BTreeMap<Flow, Shown>,
    /// The number of updates, one a second.
    second: u64,
}

impl<'a> Table<'a> {
    const fn new(format: RuleFormat, device: &'a str) -> Self {
        Self { format, device, shown: BTreeMap::new(), second: 0 }
    }

    /// The commands before all rules, which remove those of an earlier run.
    fn begin(&self) -> String {
        match self.format {
            RuleFormat::Exabgp => String::new(),
            RuleFormat::Tc => PREFERENCES
                .map(|preference| format!("filter del dev {} egress pref {preference}\n", self.device))
                .concat(),
            RuleFormat::Nft => {
                let family = |set: &str, ip: &str| {
                    format!(
                        "add set inet apportion {set} {{ typeof {ip} saddr . {ip} daddr . meta l4proto . th sport . th dport; \
                         flags dynamic, timeout; limit rate over 1 bytes/second burst {LEAST_BURST} bytes; }}; "
                    )
                };
                let rule = |set: &str, ip: &str| {
                    format!(
                        "; add rule inet apportion cuts {ip} saddr . {ip} daddr . meta l4proto . th sport . th dport @{set} drop"
                    )
                };
                // A table can be deleted only if there is one.
                format!(
                    "add table inet apportion; delete table inet apportion; add table inet apportion; {}{}\
                     add chain inet apportion cuts {{ type filter hook postrouting priority 300; }}{}{}\n",
                    family("ipv4", "ip"),
                    family("ipv6", "ip6"),
                    rule("ipv4", "ip"),
                    rule("ipv6", "ip6")
                )
            }
        }
    }

    /// The commands that make the router have these rules and no others.
    fn update(&mut self, rules: &[Rule]) -> String {
        self.second += 1;
        let wanted: BTreeMap<Flow, &Rule> = rules.iter().map(|rule| (rule.flow, rule)).collect();
        let mut lines = String::new();
        let gone: Vec<Flow> = self.shown.keys().filter(|flow| !wanted.contains_key(flow)).copied().collect();
        for flow in gone {
            if let Some(shown) = self.shown.remove(&flow) {
                lines += &self.withdrawal(&flow, shown.handle);
            }
        }
        for (flow, rule) in wanted {
            let (shown, ends) = (self.shown.get(&flow).copied(), self.second + rule.left);
            let is_renewed = |shown: &Shown| self.format == RuleFormat::Nft && ends >= shown.ends + RENEWAL;
            if shown
                .is_some_and(|shown| !is_renewed(&shown) && shown.rate.abs_diff(rule.rate) <= shown.rate / 10)
            {
                continue;
            }
            let handle = shown.map_or_else(|| self.free_handle(), |shown| shown.handle);
            self.shown.insert(flow, Shown { rate: rule.rate, ends, handle });
            lines += &self.installation(rule, handle);
        }
        lines
    }

    /// The smallest number that no filter has.
    fn free_handle(&self) -> u32 {
        let is_free = |handle: &u32| self.shown.values().all(|shown| shown.handle != *handle);
        (1..).find(is_free).unwrap_or_default()
    }

    /// The line that sets a rule or replaces it.
    fn installation(&self, rule: &Rule, handle: u32) -> String {
        let Rule { flow, rate, left } = rule;
        let [from, to] = flow.addresses;
        let burst = ((*rate as f64 * BURST) as u64).max(LEAST_BURST);
        match self.format {
            RuleFormat::Tc => format!(
                "filter replace dev {} egress protocol {} pref {} handle {handle} flower ip_proto {} src_ip {from} \
                 dst_ip {to} src_port {} dst_port {} action police rate {}bit burst {burst} conform-exceed drop/pipe\n",
                self.device,
                flow.version(["ip", "ipv6"]),
                flow.version(PREFERENCES),
                flow.protocol(),
                flow.ports[0],
                flow.ports[1],
                rate.saturating_mul(8)
            ),
            RuleFormat::Nft => {
                let (set, key) = (flow.version(["ipv4", "ipv6"]), flow.element());
                format!(
                    "{}; add element inet apportion {set} {{ {key} limit rate over {rate} bytes/second burst {burst} \
                     bytes timeout {}s }}\n",
                    self.withdrawal(flow, handle).trim_end(),
                    left.max(&1)
                )
            }
            RuleFormat::Exabgp => {
                format!("announce flow route {{ {} then {{ rate-limit {rate}; }} }}\n", flow.specification())
            }
        }
    }

    /// The line that withdraws the rule of a flow.
    fn withdrawal(&self, flow: &Flow, handle: u32) -> String {
        match self.format {
            RuleFormat::Tc => format!(
                "filter del dev {} egress protocol {} pref {} handle {handle} flower\n",
                self.device,
                flow.version(["ip", "ipv6"]),
                flow.version(PREFERENCES)
            ),
            // The element may have ended, and can be deleted only if there is one.
            RuleFormat::Nft => {
                ["add", "delete"]
                    .map(|verb| {
                        let set = flow.version(["ipv4", "ipv6"]);
                        format!("{verb} element inet apportion {set} {{ {} }}", flow.element())
                    })
                    .join("; ")
                    + "\n"
            }
            RuleFormat::Exabgp => format!("withdraw flow route {{ {} }}\n", flow.specification()),
        }
    }
}

impl Flow {
    /// The value for the IP version of the flow.
    const fn version<T: Copy>(&self, values: [T; 2]) -> T {
        values[if self.addresses[0].is_ipv4() { 0 } else { 1 }]
    }

    const fn protocol(&self) -> &'static str {
        if self.is_tcp { "tcp" } else { "udp" }
    }

    /// Writes the flow as a key of a set of nftables.
    fn element(&self) -> String {
        let ([from, to], [from_port, to_port]) = (self.addresses, self.ports);
        format!("{from} . {to} . {} . {from_port} . {to_port}", self.protocol())
    }

    /// Writes the flow as a match of ExaBGP. A prefix of IPv6 has an offset (RFC 8956).
    fn specification(&self) -> String {
        let ([from, to], [from_port, to_port]) = (self.addresses, self.ports);
        let prefix = self.version(["32", "128/0"]);
        format!(
            "match {{ source {from}/{prefix}; destination {to}/{prefix}; {} {}; source-port ={from_port}; \
             destination-port ={to_port}; }}",
            self.version(["protocol", "next-header"]),
            self.protocol()
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(source: &str, destination: &str, protocol: u8, bits: u64, left: f64) -> Value {
        json!({
            "protocol": protocol, "source": source, "destination": destination, "ports": [5004, 9],
            "bits_per_second": bits, "seconds_left": left,
        })
    }

    fn rules(all: &[Value]) -> Vec<Rule> {
        read(&json!({ "flow_rules": all }).to_string()).unwrap()
    }

    fn udp(bits: u64, left: f64) -> Vec<Rule> {
        rules(&[rule("192.0.2.1", "198.51.100.2", 17, bits, left)])
    }

    fn tcp6() -> Vec<Rule> {
        rules(&[rule("2001:db8::1", "2001:db8::2", 6, 80_000_000, 9.5)])
    }

    #[test]
    fn rules_of_tc() {
        let mut table = Table::new(RuleFormat::Tc, "eth0");
        assert_eq!(
            table.begin(),
            "filter del dev eth0 egress pref 57332\nfilter del dev eth0 egress pref 57333\n"
        );
        assert_eq!(
            table.update(&udp(420_001, 10.0)),
            "filter replace dev eth0 egress protocol ip pref 57332 handle 1 flower ip_proto udp src_ip 192.0.2.1 \
             dst_ip 198.51.100.2 src_port 5004 dst_port 9 action police rate 420008bit burst 15000 conform-exceed \
             drop/pipe\n"
        );
        let both = [udp(420_001, 10.0), tcp6()].concat();
        assert_eq!(
            table.update(&both),
            "filter replace dev eth0 egress protocol ipv6 pref 57333 handle 2 flower ip_proto tcp src_ip 2001:db8::1 \
             dst_ip 2001:db8::2 src_port 5004 dst_port 9 action police rate 80000000bit burst 500000 conform-exceed \
             drop/pipe\n"
        );
        assert_eq!(
            table.update(&tcp6()),
            "filter del dev eth0 egress protocol ip pref 57332 handle 1 flower\n"
        );
        assert_eq!(table.update(&both).split(' ').nth(10), Some("1"), "the number is free again");
    }

    #[test]
    fn rules_of_nftables() {
        let mut table = Table::new(RuleFormat::Nft, "");
        let key = "192.0.2.1 . 198.51.100.2 . udp . 5004 . 9";
        let [add, delete] =
            ["add", "delete"].map(|verb| format!("{verb} element inet apportion ipv4 {{ {key} }}"));
        assert_eq!(
            table.update(&udp(420_000, 9.2)),
            format!(
                "{add}; {delete}; add element inet apportion ipv4 {{ {key} limit rate over 52500 bytes/second burst \
                 15000 bytes timeout 10s }}\n"
            )
        );
        assert_eq!(table.update(&[]), format!("{add}; {delete}\n"));
        assert!(
            table
                .update(&tcp6())
                .starts_with("add element inet apportion ipv6 { 2001:db8::1 . 2001:db8::2 . tcp")
        );
    }

    #[test]
    fn rules_of_exabgp() {
        let mut table = Table::new(RuleFormat::Exabgp, "");
        assert_eq!(table.begin(), "");
        let specification = "match { source 192.0.2.1/32; destination 198.51.100.2/32; protocol udp; \
                             source-port =5004; destination-port =9; }";
        assert_eq!(
            table.update(&udp(420_000, 10.0)),
            format!("announce flow route {{ {specification} then {{ rate-limit 52500; }} }}\n")
        );
        assert_eq!(
            table.update(&tcp6()),
            format!(
                "withdraw flow route {{ {specification} }}\nannounce flow route {{ match {{ source \
                 2001:db8::1/128/0; destination 2001:db8::2/128/0; next-header tcp; source-port =5004; \
                 destination-port =9; }} then {{ rate-limit 10000000; }} }}\n"
            )
        );
    }

    #[test]
    fn a_rule_is_printed_again_if_its_rate_changes_by_a_tenth() {
        for format in [RuleFormat::Tc, RuleFormat::Nft, RuleFormat::Exabgp] {
            let mut table = Table::new(format, "eth0");
            let count =
                [800, 880, 889, 810, 800].map(|kilo| table.update(&udp(kilo * 1000, 5.0)).lines().count());
            assert_eq!(count, [1, 0, 1, 0, 1], "{format:?}");
        }
    }

    #[test]
    fn only_elements_of_nftables_are_renewed() {
        for (format, lines) in [(RuleFormat::Tc, 1), (RuleFormat::Exabgp, 1), (RuleFormat::Nft, 4)] {
            let mut table = Table::new(format, "eth0");
            let printed: usize = (0..20).map(|_| table.update(&udp(800_000, 10.0)).lines().count()).sum();
            assert_eq!(printed, lines, "{format:?}");
            // Unless it is renewed: then the gateway's time left falls.
            let more: usize =
                (1..10).map(|left| table.update(&udp(800_000, f64::from(10 - left))).lines().count()).sum();
            assert_eq!(more, 0, "{format:?}");
        }
    }

    #[test]
    fn only_numbers_and_addresses_get_into_lines() {
        let wrong = |change: &dyn Fn(&mut Value)| {
            let mut rule = rule("192.0.2.1", "198.51.100.2", 17, 420_000, 10.0);
            change(&mut rule);
            rules(&[rule]).len()
        };
        assert_eq!(wrong(&|_| ()), 1);
        for name in ["source", "destination", "protocol", "ports", "bits_per_second", "seconds_left"] {
            for value in
                [json!("192.0.2.1; flush ruleset"), json!("2001:db8::1"), json!(-1), json!([]), json!(null)]
            {
                assert_eq!(wrong(&|rule| rule[name] = value.clone()), 0, "{name} {value}");
            }
        }
        assert_eq!(wrong(&|rule| rule["protocol"] = json!(47)), 0, "it has no ports");
        assert_eq!(wrong(&|rule| rule["ports"] = json!([65_536, 1])), 0);
    }

    #[test]
    fn the_number_of_rules_is_bounded() {
        let many: Vec<Value> = (0..300)
            .map(|last| rule(&format!("192.0.{}.{}", last / 200, last % 200), "10.0.0.1", 17, 9, 9.0))
            .collect();
        assert_eq!(rules(&many).len(), MAX_RULES);
        assert!(read("{}").is_err() && read("no").is_err());
    }
}
