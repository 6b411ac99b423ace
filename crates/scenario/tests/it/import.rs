//! Configurations of other programs, imported and loaded: the model has the same rates, delays, losses,
//! addresses and queues.

use std::path::Path;

use apportion_core::units::{Bytes, Rate, Ratio, Span};
use apportion_scenario::gateway::GatewayConfig;
use apportion_scenario::import::{File, Imported, Kind, Options, import};
use apportion_scenario::model::{JitterDistribution, Link, Loss, Scenario};

fn example(name: &str) -> File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/import").join(name);
    File { name: name.to_owned(), text: std::fs::read_to_string(path).unwrap() }
}

fn file(name: &str, text: &str) -> File {
    File { name: name.to_owned(), text: text.to_owned() }
}

fn imported(files: &[File], options: &Options) -> Imported {
    import(files, options).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn scenario(files: &[File]) -> (Scenario, Vec<String>) {
    let Imported { text, notes, is_gateway, .. } = imported(files, &Options::default());
    assert!(!is_gateway);
    let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|_| unreachable!()).unwrap();
    (suite.points.into_iter().next().unwrap().scenario, notes.iter().map(ToString::to_string).collect())
}

fn gateway(files: &[File], options: &Options) -> (GatewayConfig, Vec<String>) {
    let Imported { text, plans, notes, is_gateway } = imported(files, options);
    assert!(is_gateway);
    let read = |_: &Path| Ok(plans.clone().unwrap_or_default().into_bytes());
    let catalog = apportion_core::system::Catalog::default();
    let config = GatewayConfig::load_with(&catalog, &text, Path::new("x.toml"), &read).unwrap();
    (config, notes.iter().map(ToString::to_string).collect())
}

fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a Link {
    scenario.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}"))
}

/// The one link of a line for a device `e`.
fn netem(options: &str) -> (Scenario, Vec<String>) {
    scenario(&[file("n", &format!("tc qdisc add dev e root {options}"))])
}

#[track_caller]
fn assert_noted(notes: &[String], wanted: &[&str]) {
    for wanted in wanted {
        assert!(notes.iter().any(|note| note.contains(wanted)), "{wanted}: {notes:#?}");
    }
    assert_eq!(notes.len(), wanted.len(), "{notes:#?}");
}

#[test]
fn a_script_of_tc_becomes_both_directions_of_a_link() {
    let (scenario, notes) = scenario(&[example("netem.sh")]);
    let there = link(&scenario, "eth0");
    assert_eq!((there.rate, there.delay), (Rate::from_mbit(10), Span::from_millis(25)));
    let jitter = there.jitter.as_ref().unwrap();
    // Three deviations of 5 ms on both sides of 40 ms.
    assert_eq!((jitter.max, jitter.reorder), (Span::from_millis(30), true));
    assert_eq!(jitter.distribution, JitterDistribution::Normal);
    assert_eq!(there.loss, Loss::Chance(Ratio::new(0.003).unwrap()));
    let back = link(&scenario, "eth0.back");
    assert_eq!((back.rate, back.delay), (Rate::from_mbit(50), Span::from_millis(40)));
    let Loss::GilbertElliott(losses) = &back.loss else { panic!("{:?}", back.loss) };
    assert_eq!([losses.p, losses.r, losses.h, losses.k].map(Ratio::get), [0.001, 0.2, 0.0, 1.0]);
    assert_eq!(scenario.flows.len(), 2);
    assert_noted(
        &notes,
        &[
            "netem.sh:5: commands of others than tc, `modprobe ifb` and 1 more",
            "netem.sh:10: jitter: its correlation of 25%",
            "netem.sh:10: duplicate 0.1%",
            "netem.sh:12: tbf: a burst of 16384 B",
        ],
    );
}

#[test]
fn losses_of_netem_are_those_of_the_link() {
    let loss = |options: &str| link(&netem(&format!("netem loss {options}")).0, "e").loss;
    let mean = |options: &str| loss(options).mean().get();
    assert_eq!(loss("3%"), Loss::Chance(Ratio::new(0.03).unwrap()));
    assert_eq!(loss("random 3"), loss("gemodel 3%"));
    assert_eq!(loss("3%"), loss("state 3%"));
    // Both name the bad state first: 1% / (1% + 9%) of the packets are lost in it.
    assert!((mean("state 1% 9%") - 0.1).abs() < 1e-12);
    assert!((mean("gemodel 1% 9% 50% 0%") - 0.05).abs() < 1e-12);
    assert!((mean("gemodel p 1% r 9% 1-h 100% 1-k 10%") - 0.19).abs() < 1e-12);
    let (scenario, notes) = netem("netem loss 10% corrupt 10%");
    assert!((link(&scenario, "e").loss.mean().get() - 0.19).abs() < 1e-12);
    assert_noted(&notes, &["corrupt 10%: taken as losses"]);
}

#[test]
fn delays_of_netem_are_around_their_mean() {
    let (scenario, notes) = netem("netem delay 100ms 20ms");
    let own = link(&scenario, "e");
    assert_eq!(own.delay, Span::from_millis(80));
    let jitter = own.jitter.as_ref().unwrap();
    assert_eq!((jitter.max, jitter.distribution), (Span::from_millis(40), JitterDistribution::Uniform));
    assert!(jitter.reorder && notes.is_empty(), "{notes:?}");
    // With a rate netem sends in order.
    assert!(!link(&netem("netem delay 100ms 20ms rate 1mbit").0, "e").jitter.as_ref().unwrap().reorder);
    // Delays are never negative.
    let (scenario, notes) = netem("netem delay 5ms 10ms");
    let own = link(&scenario, "e");
    assert_eq!((own.delay, own.jitter.as_ref().unwrap().max), (Span::ZERO, Span::from_millis(10)));
    assert_noted(&notes, &["delay 5ms 10ms: netem cuts the delays below 0"]);
}

#[test]
fn netem_within_netem_adds_delays_and_losses() {
    let text = "tc qdisc add dev e root handle 1: netem delay 20ms loss 1%\n\
                tc qdisc add dev e parent 1:1 handle 2: netem delay 5ms loss 2%\n";
    let (scenario, notes) = scenario(&[file("n", text)]);
    let own = link(&scenario, "e");
    assert_eq!(own.delay, Span::from_millis(25));
    // 1 - 0.99 x 0.98.
    assert!(matches!(own.loss, Loss::Chance(share) if (share.get() - 0.0298).abs() < 1e-9), "{:?}", own.loss);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn queues_of_tc_have_what_linux_has() {
    let queue = |words: &str| link(&netem(words).0, "e").queue.clone();
    let of = |text: &str| apportion_scenario::queue::from_text(text).unwrap();
    assert_eq!(queue("sfq"), of(r#"{ kind = "sfq", limit = "127p", perturb = "0s" }"#));
    assert_eq!(queue("sfq perturb 20"), of(r#"{ kind = "sfq", limit = "127p", perturb = "20s" }"#));
    assert_eq!(queue("pfifo_head_drop limit 100"), of(r#"{ kind = "head", limit = "100p" }"#));
}

#[test]
fn what_netem_has_and_links_have_not_is_named() {
    let (_, notes) = netem(
        "netem limit 10 delay 10ms 1ms 25% distribution pareto loss 1% 5% ecn duplicate 1% 2% reorder 3% 4% gap 5 slot 1ms 2ms \
         packets 3 rate 1mbit 20 100 5",
    );
    assert_noted(
        &notes,
        &[
            "jitter: its correlation of 25%",
            "distribution pareto: `normal` stands for it",
            "loss: its correlation of 5%",
            "ecn: what is lost is not marked",
            "duplicate 1%",
            "duplicate: its correlation",
            "reorder 3%",
            "reorder: its correlation",
            "gap 5: no packet of each 5 goes at once",
            "slot 1ms 2ms packets 3",
            "rate 1mbit 20 100 5",
        ],
    );
    let (_, notes) = netem("netem delay 100ms rate 1gbit");
    assert_noted(&notes, &["limit 1000: netem counts packets on their way too, so that 120.0 Mb/s"]);
}

#[test]
fn zeros_of_netem_are_as_if_they_were_not_there() {
    let zeros = "delay 1ms 0ms 0% loss random 0% 0% reorder 0% 0% duplicate 0% 0% corrupt 0% 0% rate 0bit";
    let (zero, notes) = netem(&format!("netem limit 1000 {zeros}"));
    let plain = netem("netem delay 1ms").0;
    let [zero, plain] = [link(&zero, "e"), link(&plain, "e")];
    assert_eq!(
        (zero.delay, zero.jitter.as_ref(), &zero.loss),
        (plain.delay, plain.jitter.as_ref(), &plain.loss)
    );
    assert_eq!((zero.rate, &zero.queue), (plain.rate, &plain.queue));
    assert_noted(&notes, &["limit 1000: netem counts packets on their way too"]);
}

#[test]
fn a_shaper_above_netem_is_the_rate_of_the_link() {
    let text = "tc qdisc add dev e root handle 1: tbf rate 10mbit burst 32kbit latency 400ms
                tc qdisc add dev e parent 1:1 handle 10: netem delay 20msec 2ms limit 800
                tc filter add dev e parent 1: protocol ip handle 1 fw flowid 1:1 action mirred egress redirect dev ifb0
";
    let (scenario, notes) = scenario(&[file("s", text)]);
    let own = link(&scenario, "e");
    assert_eq!((own.rate, own.delay), (Rate::from_mbit(10), Span::from_millis(18)));
    assert_eq!(
        own.queue,
        apportion_scenario::queue::from_text("{ kind = \"fifo\", limit = \"800p\" }").unwrap()
    );
    // Without a rate of its own netem lets packets overtake, and only ingress is the other direction.
    assert!(own.jitter.as_ref().unwrap().reorder);
    assert_noted(&notes, &["s:1: tbf: a burst of 4000 B", "s:3: a filter"]);
}

#[test]
fn cake_keeps_its_parameters() {
    let words = "cake bandwidth 20Mbit docsis ack-filter dual-srchost rtt 50ms memlimit 4mb nat";
    let (scenario, notes) = netem(words);
    let own = link(&scenario, "e");
    assert_eq!(own.rate, Rate::from_mbit(20));
    let text = "{ kind = \"cake\", bandwidth = \"20Mbit\", overhead = \"18B\", mpu = \"64B\", hosts = \"source\", ack_filter = \"conservative\", \
                target = \"2500us\", interval = \"50ms\", limit = \"4194304B\" }";
    assert_eq!(own.queue, apportion_scenario::queue::from_text(text).unwrap());
    assert_noted(&notes, &["memlimit: Linux counts its own memory"]);
    let charge = |words: &str| {
        let (scenario, _) = netem(words);
        link(&scenario, "e").queue.charge(Bytes::new(1_500), Bytes::ZERO).unwrap().get()
    };
    assert_eq!(charge("cake bandwidth 20Mbit pppoe-ptm ether-vlan"), 1_558);
    // Layers add up in any order, except for `conservative` and a number.
    assert_eq!(charge("cake bandwidth 20Mbit ether-vlan ethernet"), 1_542);
    assert_eq!(charge("cake bandwidth 20Mbit overhead 44 docsis"), 1_562);
    assert_eq!(charge("cake bandwidth 20Mbit docsis overhead 44"), 1_544);
    assert_eq!(charge("cake bandwidth 20Mbit conservative"), 1_749);
    assert_eq!(charge("cake bandwidth 20Mbit raw overhead 4"), 1_518);
    assert_eq!(charge("cake bandwidth 20Mbit"), 1_500);
}

#[test]
fn cake_of_both_directions_becomes_a_gateway() {
    let text = "tc qdisc replace dev eth1 root cake bandwidth 18Mbit diffserv4 pppoe-ptm nat\n\
                tc qdisc replace dev ifb4eth1 root cake bandwidth 90Mbit besteffort overhead 40 wash ingress dual-dsthost\n";
    let options = Options { gateway: true, ..Options::default() };
    let (config, notes) = gateway(&[file("g", text)], &options);
    assert_eq!((config.up.rate, config.down.rate), (Rate::from_mbit(18), Rate::from_mbit(90)));
    assert_eq!((config.up.overhead, config.down.overhead), (Bytes::new(30), Bytes::new(40)));
    assert_eq!(config.outside, "eth1");
    assert!(config.up.queue.text.contains("\"diffserv4\""), "{}", config.up.queue.text);
    assert!(config.down.queue.text.contains("\"destination\""), "{}", config.down.queue.text);
    assert_noted(&notes, &["g:1: nat", "g:2: wash", "g:2: ingress", "which interface is inside"]);
}

#[test]
fn what_tc_shows_is_read_like_its_commands() {
    let shown = "qdisc noqueue 0: dev lo root refcnt 2 \n\
                 qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 50ms  5ms loss 1% rate 10Mbit\n \
                 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n\
                 qdisc mq 0: dev eth2 root\n\
                 qdisc fq_codel 0: dev eth2 parent :2 limit 10240p flows 1024 target 5ms ce_threshold 999us memory_limit 32Mb ecn drop_batch 64 \n\
                 qdisc fq_codel 0: dev eth2 parent :1 limit 10240p flows 1024 target 5ms ce_threshold 999us memory_limit 32Mb ecn drop_batch 64 \n\
                 qdisc htb 1: dev eth3 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0\n\
                 class htb 1:10 parent 1:1 leaf 10: prio 0 rate 10Mbit ceil 12Mbit burst 1600b cburst 1600b\n\
                 class htb 1:1 root rate 11Mbit ceil 11Mbit burst 1600b cburst 1600b\n";
    let (scenario, notes) = scenario(&[file("s", shown)]);
    let command = netem("netem delay 50ms 5ms loss 1% rate 10mbit").0;
    let [shown, written] = [link(&scenario, "eth0"), link(&command, "e")];
    assert_eq!((&shown.loss, shown.delay, &shown.queue), (&written.loss, written.delay, &written.queue));
    // A class gets no more than its ancestors.
    assert_eq!(link(&scenario, "eth3").rate, Rate::from_mbit(11));
    let fq_codel = "{ kind = \"fq_codel\", limit = \"10240p\", memory_limit = \"32MiB\", classify = \"hashed\", flows = 1024, \
                    ce_threshold = \"999us\" }";
    assert_eq!(link(&scenario, "eth2").queue, apportion_scenario::queue::from_text(fq_codel).unwrap());
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn classes_with_netem_are_links_and_others_are_named() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 20mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:20 htb rate 10mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:30 htb rate 10mbit\n\
                tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 10ms\n\
                tc qdisc add dev eth0 parent 1:20 handle 20: netem delay 20ms\n\
                tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.1 flowid 1:10\n";
    let (scenario, notes) = scenario(&[file("c", text)]);
    let of = |name: &str| (link(&scenario, name).rate, link(&scenario, name).delay);
    assert_eq!(of("eth0-1-10"), (Rate::from_mbit(20), Span::from_millis(10)));
    assert_eq!(of("eth0-1-20"), (Rate::from_mbit(10), Span::from_millis(20)));
    assert_noted(&notes, &["c:5: the class 1:30", "c:1: classes of htb with netem", "c:8: a filter"]);
}

#[test]
fn the_last_command_counts_and_a_deletion_ends_nothing() {
    let text = "tc qdisc del dev e root\ntc q a dev e root netem delay 1ms\nip netns exec n tc qdisc add dev e root netem delay 3ms\n\
                tc qdisc change dev e root netem delay 2ms\ntc qdisc del dev e root\n";
    let (scenario, notes) = scenario(&[file("d", text)]);
    assert_eq!(link(&scenario, "e").delay, Span::from_millis(2));
    assert_eq!(link(&scenario, "n-e").delay, Span::from_millis(3));
    assert_noted(&notes, &["d:4: it takes the place of line 2", "d:5: what e has is deleted here"]);
}

#[test]
fn sqm_scripts_become_a_gateway() {
    let (config, notes) = gateway(&[example("sqm")], &Options::default());
    assert_eq!((config.up.rate, config.down.rate), (Rate::from_mbit(10), Rate::from_mbit(85)));
    assert_eq!((config.up.overhead, config.down.overhead), (Bytes::new(34), Bytes::new(34)));
    // `layer_cake` has three tins; with `squash_ingress` one for ingress.
    for (queue, words) in [
        (&config.up.queue.text, ["\"diffserv3\"", "\"source\"", "\"conservative\""]),
        (&config.down.queue.text, ["\"besteffort\"", "\"destination\"", "\"none\""]),
    ] {
        assert!(words.iter().all(|word| queue.contains(word)), "{queue}");
    }
    assert_noted(
        &notes,
        &[
            "`guest` is not enabled",
            "sqm:16: nat",
            "sqm:17: nat",
            "wash",
            "ingress",
            "inside",
            "no frames of Ethernet",
        ],
    );
}

#[test]
fn what_a_script_and_its_user_both_say_is_noted_once() {
    let text = "config queue\n\toption enabled 1\n\toption interface eth0\n\toption download 9000\n\toption upload 2000\n\
                \toption script piece_of_cake.qos\n\toption squash_dscp 0\n\toption iqdisc_opts 'ingress nat'\n\toption eqdisc_opts nat\n";
    let (_, notes) = gateway(&[file("q", text)], &Options::default());
    assert_noted(&notes, &["q:9: nat", "q:8: nat", "q:8: ingress", "inside"]);
}

#[test]
fn other_disciplines_of_sqm_scripts_keep_their_options() {
    let text = "config queue\n\toption enabled 1\n\toption interface eth0\n\toption download 0\n\toption upload 2000\n\toption qdisc fq_codel\n\
                \toption script simple.qos\n\toption linklayer atm\n\toption overhead 10\n\toption elimit 500\n\toption egress_ecn NOECN\n\
                \toption etarget 7ms\n\toption autorate 1\n";
    let (config, notes) = gateway(&[file("q", text)], &Options::default());
    let queue = &config.up.queue.text;
    let words = ["limit = \"500p\"", "target = \"7ms\"", "ecn = false"];
    assert!(words.iter().all(|word| queue.contains(word)), "{queue}");
    // The table of sizes adds to a frame with its header.
    assert_eq!(config.up.overhead, Bytes::new(24));
    assert_noted(
        &notes,
        &["script simple: three classes", "linklayer atm", "download 0", "option autorate '1'", "inside"],
    );
}

#[test]
fn circuits_of_libreqos_become_plans() {
    let files = ["ShapedDevices.csv", "network.json", "lqos.conf"].map(example);
    let options = Options { plans: "plans.csv".to_owned(), ..Options::default() };
    let all = imported(&files, &options);
    let lines: Vec<String> =
        all.plans.unwrap().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    assert!(lines.contains(&"North,Site,,250Mbit,50Mbit,,".to_owned()), "{lines:?}");
    // A minimum above the share counts; one below it is left out.
    let mill = "100,North,192.0.2.10 2001:db8:10::/48,250Mbit,50Mbit,200Mbit,40Mbit";
    let bakery = "101,North,192.0.2.64/28 192.0.2.80 2001:db8:11::/48 192.0.2.81,100Mbit,20Mbit,,";
    assert!(lines.contains(&mill.to_owned()) && lines.contains(&bakery.to_owned()), "{lines:?}");
    let (config, notes) = gateway(&files, &options);
    assert_eq!((config.inside.as_str(), config.outside.as_str()), ("eth1", "eth0"));
    assert_eq!((config.up.rate, config.down.rate), (Rate::from_mbit(190), Rate::from_mbit(900)));
    // Addresses without a circuit are assured less on purpose.
    assert!(config.warnings().iter().all(|it| it.contains("`others`")), "{:?}", config.warnings());
    let names: Vec<&str> = config.customers.iter().map(|customer| customer.name.as_str()).collect();
    assert!(["100", "101", "102", "103", "others"].iter().all(|name| names.contains(name)), "{names:?}");
    assert_noted(
        &notes,
        &[
            "sqm of LibreQoS",
            "csv:7: circuit 104: it has no address",
            "a part in 100",
            "6 minimums are at most the part",
        ],
    );
}

#[test]
fn what_libreqos_promises_too_much_is_named() {
    let network = r#"{ "A": { "downloadBandwidthMbps": 100, "uploadBandwidthMbps": 100, "children": {
        "B": { "type": "virtual", "id": "b-1", "children": { "C": { "downloadBandwidthMbps": 50, "uploadBandwidthMbps": 0, "colour": 1 } } } } },
        "Bare": { "downloadBandwidthMbps": 1, "uploadBandwidthMbps": 1 } }"#;
    let devices = "Circuit ID,Circuit Name,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,sqm\n\
                   1,x,C,192.0.2.1,,40,1,40,5,cake\n2,y,C,\"192.0.2.1,192.0.2.2/33\",,40,1,60,5,\n\
                   2,y,C,192.0.2.3/24,,40,1,70,5,\n3,z,Gone,192.0.3.3,,9,1,8,5,\nothers,o,b-1,2001:db8::9/32,,1,1,10,5,\n";
    let options = Options { plans: "p.csv".to_owned(), ..Options::default() };
    let (config, notes) = gateway(&[file("n.json", network), file("d.csv", devices)], &options);
    assert_noted(
        &notes,
        &[
            "n.json:2: `B` is virtual",
            "n.json:2: C: `colour`",
            "n.json:3: `Bare` has no circuits",
            "d.csv:1: sqm of LibreQoS",
            "d.csv:2: circuit 1: sqm cake",
            "d.csv:3: 192.0.2.1 belongs to circuit 1 already",
            "d.csv:3: `192.0.2.2/33` is no address",
            "d.csv:4: circuit 2: rates or parent other than on line 3",
            "d.csv:5: circuit 3: its minimum is above its maximum",
            "d.csv:5: circuit 3: network.json has no node `Gone`",
            "up: no lqos.conf",
            "down: no lqos.conf",
            "no lqos.conf names the interfaces",
            "addresses without a circuit",
            "n.json:2: what is under `C` is promised more down",
            "d.csv:1: names that are taken, or that plans cannot have: 1 changed, the first from `others` to `others-2`",
            "d.csv:1: 5 minimums are at most the part",
        ],
    );
    // `others` takes packets without a customer, so the circuit gets another name.
    assert!(config.customers.iter().any(|customer| customer.name == "others-2"), "{:?}", config.customers);
}

#[test]
fn impairments_of_containerlab_become_links() {
    let (by_command, notes) = scenario(&[example("clab.sh")]);
    let own = link(&by_command, "clab-wan-r1-eth1");
    assert_eq!((own.rate, own.delay), (Rate::from_mbit(20), Span::from_millis(18)));
    assert_eq!(own.loss, Loss::Chance(Ratio::new(0.005).unwrap()));
    assert!(notes.is_empty(), "{notes:?}");
    let json = r#"{ "r1": [ { "interface": "lo", "delay": "", "jitter": "", "packet_loss": 0, "rate": 0, "corruption": 0 },
        { "interface": "eth1 (e1-1)", "delay": "20ms", "jitter": "2ms", "packet_loss": 0.5, "rate": 20000, "corruption": 0 } ] }"#;
    let table = "╭───────────┬───────┬────────┬─────────────┬─────────────┬────────────╮\n\
                 │ Interface │ Delay │ Jitter │ Packet Loss │ Rate (kbit) │ Corruption │\n\
                 │ lo        │ N/A   │ N/A    │ N/A         │ N/A         │ N/A        │\n\
                 │ eth1      │ 20ms  │ 2ms    │ 0.50%       │       20000 │ 0.00%      │\n";
    for (text, name) in [(json, "r1-eth1"), (table, "eth1")] {
        let (shown, notes) = scenario(&[file("s", text)]);
        let shown = link(&shown, name);
        assert_eq!((shown.rate, shown.delay, &shown.loss), (own.rate, own.delay, &own.loss), "{text}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn the_kind_is_guessed_from_what_is_in_a_file() {
    for (name, kind) in [("netem.sh", Kind::Tc), ("sqm", Kind::Sqm), ("clab.sh", Kind::Containerlab)] {
        let files = [example(name)];
        let named = imported(&files, &Options { kind: Some(kind), ..Options::default() });
        assert_eq!(imported(&files, &Options::default()), named, "{name}");
    }
}
