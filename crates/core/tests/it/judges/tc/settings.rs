//! Settings that are accepted and shown, or refused.

use apportion_core::Ecn;
use apportion_core::limit::Limit;
use apportion_core::units::Packets;

use super::super::bench::{Bench, Shown, ms};
use super::super::{Case, Check, Verdict, agrees, differs, none};

const fn shows(name: &'static str, table: &'static str, values: &'static str) -> Case {
    Case(name, Verdict::Agrees(Check::Shows(Shown { table, values })))
}

const fn shows_else(
    name: &'static str,
    why: &'static str,
    table: &'static str,
    values: &'static str,
) -> Case {
    Case(name, Verdict::Differs(why, Check::Shows(Shown { table, values })))
}

const fn refuses(name: &'static str, table: &'static str, key: &'static str) -> Case {
    Case(name, Verdict::Agrees(Check::Refuses(table, key)))
}

const fn refuses_here(name: &'static str, why: &'static str, table: &'static str, key: &'static str) -> Case {
    Case(name, Verdict::Differs(why, Check::Refuses(table, key)))
}

const CE_THRESHOLD: &str = "`fq` has no CE threshold; `codel` and `fq_codel` do";
const HANDLE: &str = "a link has one queue, without a handle, and nothing is deleted";
const CHANGE: &str = "a change names the whole queue, so no setting is kept from before";
const CLASS: &str = "there is no list of the classes that a discipline makes";

pub fn cases() -> Vec<Case> {
    let files = [
        codel(),
        fq_codel(),
        fq(),
        red(),
        sfq(),
        choke(),
        dualpi2(),
        cake(),
        tbf(),
        htb(),
        hfsc(),
        bands(),
        fifo(),
    ];
    files.into_iter().flatten().collect()
}

/// The limit that is set while the discipline runs is shown.
fn limit_later(kind: &str, packets: u64) {
    let mut bench = Bench::new(kind);
    let limit = Limit::Packets(Packets::new(packets));
    bench.queue.set_limit(limit);
    assert_eq!(bench.queue.limit(), Some(limit));
}

/// `codel.json` (3efaf503).
fn codel() -> Vec<Case> {
    vec![
        shows("codel 983a", "codel preset=paper", "limit=1000p target=5ms interval=100ms ecn=false"),
        shows("codel 38aa", "codel preset=paper limit=1500p", "limit=1500p target=5ms interval=100ms"),
        shows("codel 9178", "codel preset=paper target=100ms", "limit=1000p target=100ms interval=100ms"),
        shows("codel 78d1", "codel preset=paper interval=20ms", "limit=1000p target=5ms interval=20ms"),
        shows("codel 238a", "codel preset=paper ecn=true", "limit=1000p target=5ms interval=100ms ecn=true"),
        shows(
            "codel 939c",
            "codel preset=paper ecn=true ce_threshold=20ms",
            "limit=1000p target=5ms ce_threshold=20ms interval=100ms ecn=true",
        ),
        none("codel 8380", HANDLE),
        agrees("codel 289c", || limit_later("codel", 5_000)),
        agrees("codel 0648", || limit_later("codel", 100)),
    ]
}

/// `fq_codel.json` (a7bee4e7), without its case of packets that wait, and `fq_pie.json` (313267e5). The
/// kernel's classification is by a hash.
fn fq_codel() -> Vec<Case> {
    macro_rules! kernel {
        ($name:literal, $keys:literal, $values:literal) => {
            shows($name, concat!("fq_codel preset=paper classify=hashed ", $keys), $values)
        };
    }
    vec![
        agrees("fq_codel 4957", fq_codel_defaults),
        kernel!(
            "fq_codel 7621",
            "limit=1000p",
            "limit=1000p target=5ms interval=100ms memory_limit=32MB ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel 6871",
            "memory_limit=100000B",
            "limit=10240p target=5ms interval=100ms memory_limit=100000B ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel 5636",
            "target=2ms",
            "limit=10240p target=2ms interval=100ms memory_limit=32MB ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel 630a",
            "interval=5ms",
            "limit=10240p target=5ms interval=5ms memory_limit=32MB ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel 4324",
            "quantum=9000B",
            "limit=10240p quantum=9000B target=5ms interval=100ms ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel b190",
            "ecn=false",
            "limit=10240p target=5ms interval=100ms memory_limit=32MB ecn=false drop_batch=64"
        ),
        kernel!(
            "fq_codel 5381",
            "ce_threshold=1024ms",
            "limit=10240p target=5ms ce_threshold=1024ms interval=100ms memory_limit=32MB ecn=true drop_batch=64"
        ),
        kernel!(
            "fq_codel c9d2",
            "drop_batch=100",
            "limit=10240p target=5ms interval=100ms memory_limit=32MB ecn=true drop_batch=100"
        ),
        kernel!(
            "fq_codel 523b",
            "limit=1000p flows=256 drop_batch=100",
            "limit=1000p flows=256 target=5ms interval=100ms ecn=true drop_batch=100"
        ),
        none("fq_codel 9283", CHANGE),
        agrees("fq_codel 3459", || limit_later("fq_codel limit=1000p flows=256", 2_000)),
        none("fq_codel 0128", HANDLE),
        none("fq_codel 0435", CLASS),
        shows("fq_pie 83be", "fq_pie preset=paper flows=65536", "limit=10240p flows=65536"),
    ]
}

/// The kernel's defaults, with 1,024 queues: 20,000 flows fill them all.
fn fq_codel_defaults() {
    let table = "fq_codel preset=paper classify=hashed";
    let values = "limit=10240p target=5ms interval=100ms memory_limit=32MB ecn=true drop_batch=64";
    Shown { table, values }.check();
    let mut bench = Bench::new("fq_codel classify=hashed limit=30000p");
    (0..20_000).for_each(|flow| bench.arrive(ms(0.0), flow, 60, Ecn::NotEct));
    assert_eq!(bench.statistic("new_flows"), 1_024.0);
}

/// `fq.json` (34c55367), without its case of packets that wait.
fn fq() -> Vec<Case> {
    let unpaced = "packets carry no pacing rate, time or origin of their sender; `maxrate` alone paces";
    let credits = "credits have 64 bits here: an initial quantum of 2^32 bytes is the most, not 2^31 - 1";
    vec![
        shows("fq 983b", "fq preset=paper", "limit=10000p flow_limit=100p"),
        shows("fq 38a1", "fq limit=3000p", "limit=3000p"),
        shows("fq 0a18", "fq preset=paper flow_limit=300p", "limit=10000p flow_limit=300p"),
        shows("fq 2390", "fq preset=paper quantum=9000B", "limit=10000p flow_limit=100p quantum=9000B"),
        shows(
            "fq 845b",
            "fq preset=paper initial_quantum=900000B",
            "limit=10000p flow_limit=100p initial_quantum=900000B",
        ),
        shows_else("fq 10f7", credits, "fq initial_quantum=2147483648B", "initial_quantum=2147483648B"),
        shows("fq 9398", "fq preset=paper maxrate=100kbit", "limit=10000p flow_limit=100p maxrate=100kbit"),
        none("fq 342c", unpaced),
        none("fq 6391", "a debt is paid by turns, not forgiven after a time"),
        none("fq 238b", unpaced),
        none("fq 7582", unpaced),
        none("fq 4894", "time is exact: there are no timers whose slack could be set"),
        none("fq 324c", CE_THRESHOLD),
        none("fq 424a", unpaced),
        none("fq 89e1", unpaced),
        none("fq 32e1", HANDLE),
        agrees("fq 49b0", || limit_later("fq", 5_000)),
        agrees("fq 9478", || limit_later("fq", 100)),
    ]
}

/// `red.json` (058e56ac).
fn red() -> Vec<Case> {
    let adaptive = "`red` does not adapt its probability";
    let flags =
        "ECN-capable packets above the maximum are always dropped (harddrop), others never spared (nodrop)";
    vec![
        shows(
            "red 8b6e",
            "red limit=1048576B mean_pktsize=1500B min_th=102400B max_th=307200B",
            "limit=1048576B min_th=102400B max_th=307200B ecn=false",
        ),
        none("red 342e", adaptive),
        shows(
            "red 2d4b",
            "red limit=1048576B mean_pktsize=1500B min_th=102400B max_th=307200B ecn=true",
            "limit=1048576B min_th=102400B max_th=307200B ecn=true",
        ),
        none("red 650f", adaptive),
        none("red 5f15", flags),
        none("red 53e8", flags),
        none("red d091", flags),
        none("red af8e", flags),
    ]
}

/// `sfq.json` (55b02455).
fn sfq() -> Vec<Case> {
    let defaults = "the hash changes each 10 s by default, and the limit follows the link";
    let packets =
        "`sfq` is that of 1990: turns are of one packet, and a queue has no limit or RED of its own";
    vec![
        shows_else("sfq 7482", defaults, "sfq", "buckets=1024 perturb=10s"),
        shows("sfq c186", "sfq limit=8p", "limit=8p"),
        shows("sfq ae23", "sfq perturb=10s", "buckets=1024 perturb=10s"),
        none("sfq a430", packets),
        shows("sfq 4539", "sfq buckets=512", "buckets=512"),
        none("sfq b089", packets),
        none("sfq 99a0", packets),
        none("sfq 7389", packets),
        none("sfq 6472", packets),
        none("sfq 8929", CLASS),
    ]
}

/// `choke.json` (d227cc0b).
fn choke() -> Vec<Case> {
    let thresholds = "thresholds are set, and not derived from the limit; the defaults are those of RED";
    vec![
        shows_else("choke 8937", thresholds, "choke limit=1000p", "limit=1000p min_th=5p max_th=15p"),
        shows_else(
            "choke 48c0",
            thresholds,
            "choke limit=1000p min_th=100p max_th=250p",
            "limit=1000p min_th=100p max_th=250p",
        ),
        shows_else(
            "choke 38c1",
            thresholds,
            "choke limit=1000p min_th=83p max_th=900p",
            "limit=1000p min_th=83p max_th=900p",
        ),
        none("choke 234a", "CHOKe here does not mark"),
        none("choke 4380", "the weight of the average is set, not derived from a burst"),
        none("choke 48c7", HANDLE),
        none("choke 4398", CHANGE),
        none("choke 0301", CHANGE),
    ]
}

/// `dualpi2.json` (032f0e9e).
fn dualpi2() -> Vec<Case> {
    let defaults =
        "the defaults are those of RFC 9332: a ramp from 800 us over 400 us, and a classic weight of 1/16";
    let gains = "gains are exact, 0.05 and 1.5 Hz; the kernel has steps of 1/256 and shows 14 and 0.3 % less";
    let target = "`target` is a parameter of its own, 15 ms unless set; the kernel's is a sixth of the largest round trip";
    let weight = "with a weight of 0 the classic queue could starve";
    let flags = "no such switch: ECT(1) alone selects L, drops are at the head, thresholds are times, and the buffer has one limit";
    vec![
        shows_else("dualpi2 a4c7", defaults, "dualpi2", "min_th=800us range=400us k=2 classic_weight=6.25%"),
        none("dualpi2 1ea4", flags),
        shows_else("dualpi2 2130", gains, "dualpi2 target=20ms rtt_max=200ms", "target=20ms rtt_max=200ms"),
        shows_else("dualpi2 90c1", target, "dualpi2 rtt_max=300ms", "target=15ms rtt_max=300ms"),
        none("dualpi2 7b3c", flags),
        none("dualpi2 49a3", flags),
        none("dualpi2 d0a1", flags),
        none("dualpi2 f051", flags),
        none("dualpi2 456b", flags),
        none("dualpi2 610c", flags),
        shows("dualpi2 b4fa", "dualpi2 k=1", "k=1"),
        refuses_here("dualpi2 37f1", weight, "dualpi2 classic_weight=0%", "classic_weight"),
    ]
}

/// `cake.json` (254a1420).
fn cake() -> Vec<Case> {
    let tins =
        "`tins` is by classes of flows unless set; a DSCP is a property of packets of gateways and captures";
    let flags =
        "there is no NAT, wash, mark, rate estimate, ingress mode or isolation of hosts without flows";
    vec![
        shows_else(
            "cake 1212",
            tins,
            "cake",
            "tins=class hosts=triple ack_filter=none interval=100ms framing=none",
        ),
        shows(
            "cake 3281",
            "cake tins=diffserv3 bandwidth=1kbit",
            "bandwidth=1kbit tins=diffserv3 hosts=triple ack_filter=none",
        ),
        none("cake c940", flags),
        shows("cake 2310", "cake interval=200us target=10us", "interval=200us target=10us"),
        shows("cake 2385", "cake tins=besteffort", "tins=besteffort hosts=triple"),
        shows("cake a032", "cake tins=diffserv8", "tins=diffserv8 hosts=triple"),
        shows("cake 2349", "cake tins=diffserv4", "tins=diffserv4 hosts=triple"),
        shows("cake 8472", "cake hosts=none flows=1 ways=1", "hosts=none flows=1"),
        none("cake 2341", flags),
        none("cake 5134", flags),
        none("cake 2302", "there is no switch for the splitting of super-packets"),
        shows(
            "cake 0768",
            "cake hosts=source ack_filter=conservative",
            "hosts=source ack_filter=conservative",
        ),
        shows(
            "cake 0238",
            "cake hosts=destination ack_filter=aggressive",
            "hosts=destination ack_filter=aggressive",
        ),
        shows(
            "cake 6572",
            "cake limit=10000B framing=ptm overhead=0B",
            "limit=10000B framing=ptm overhead=0B",
        ),
        none("cake 2436", flags),
        shows("cake 3984", "cake overhead=128B mpu=256B", "overhead=128B mpu=256B framing=none"),
        none("cake 5421", flags),
        none("cake 6854", HANDLE),
        none("cake 2342", CHANGE),
        none("cake 2313", CHANGE),
        none("cake 4365", CLASS),
    ]
}

/// `tbf.json` (918e37d5).
fn tbf() -> Vec<Case> {
    let layer = "a token bucket counts the bytes of packets, without a link layer; `cake` has one";
    vec![
        shows(
            "tbf 6430",
            "fifo limit=1000B shaper=token_bucket rate=10kbit burst=1500B",
            "limit=1000B rate=10kbit burst=1500B",
        ),
        none("tbf 0518", "a bucket for the peak rate is refused without a peak rate"),
        shows(
            "tbf 320a",
            "fifo limit=1000B shaper=token_bucket rate=20kbit burst=1500B peak=30kbit peak_burst=1510B",
            "limit=1000B rate=20kbit burst=1500B peak=30kbit peak_burst=1510B",
        ),
        none("tbf 239b", "a limit in time is one of the link's rate, not of the bucket's"),
        none("tbf c975", layer),
        none("tbf 948c", layer),
        none("tbf 3549", CHANGE),
        none("tbf f948", CHANGE),
        none("tbf 2348", CLASS),
    ]
}

/// `htb.json` (55b02455).
fn htb() -> Vec<Case> {
    let bursts = "a burst that is not set is 10 ms of the rate and a frame of 1,514 B, as in the manual; the kernel's is 1,600 B";
    let ceil = "a ceiling below the rate is refused, since the class could not get its rate";
    let direct = "a quantum follows rates without a divisor, and no packet passes beside the classes";
    let layer = "classes count the bytes of packets, without a link layer";
    vec![
        none("htb 0904", direct),
        none("htb 3906", direct),
        none("htb 8492", direct),
        none("htb 9502", direct),
        differs("htb b924", bursts, || at_once("burst=1000B", 1_000)),
        none("htb 4359", layer),
        shows_else(
            "htb 9048",
            bursts,
            "htb class.a.rate=20kbit class.a.prio=1 class.a.others=true",
            "a.rate=20kbit a.prio=1",
        ),
        refuses_here(
            "htb 4994",
            ceil,
            "htb class.a.rate=20kbit class.a.ceil=10kbit class.a.others=true",
            "class.a.ceil",
        ),
        shows_else(
            "htb 9523",
            bursts,
            "htb class.a.rate=20kbit class.a.cburst=2000B class.a.others=true",
            "a.rate=20kbit a.cburst=2000B",
        ),
        none("htb 5353", layer),
        differs("htb 346a", bursts, || at_once("quantum=2048B", 1_539)),
        none("htb 303a", HANDLE),
    ]
}

/// A class of 20 kb/s sends `bytes` at once, and a packet of 100 bytes with which it goes into debt.
fn at_once(keys: &str, bytes: u64) {
    let keys: String = keys.split_whitespace().map(|key| format!(" class.a.{key}")).collect();
    let mut bench = Bench::new(&format!("htb class.a.rate=20kbit class.a.others=true{keys}"));
    bench.burst(ms(0.0), 100, 100, Ecn::NotEct);
    while bench.depart(ms(0.0)).is_some() {}
    assert_eq!(bench.sent.len() as u64, bytes / 100 + 1, "{keys}");
}

/// `hfsc.json` (1e24c4f2).
fn hfsc() -> Vec<Case> {
    let slopes = "a curve is written by its slopes, not as a size and a time";
    let inner =
        "only classes without children have packets, and so a real-time curve; the kernel adds a share to it";
    vec![
        shows("hfsc 3254", "hfsc limit=10p", "limit=10p"),
        shows(
            "hfsc 0289",
            "hfsc class.a.rt_m2=20kbit class.a.ls_m2=20kbit class.a.ul_m2=10kbit class.a.others=true",
            "a.rt_m2=20kbit a.ls_m2=20kbit a.ul_m2=10kbit",
        ),
        none("hfsc 846a", slopes),
        shows(
            "hfsc 5413",
            "hfsc class.a.rt_m2=20kbit class.a.ls_m2=10kbit class.a.others=true",
            "a.rt_m2=20kbit a.ls_m2=10kbit",
        ),
        none("hfsc 9312", slopes),
        none("hfsc 6931", HANDLE),
        none("hfsc 8436", CLASS),
        refuses_here(
            "hfsc bef4",
            inner,
            "hfsc class.a.rt_m2=8bit class.b.rt_m2=8bit class.b.parent=a class.b.others=true",
            "class.a.rt_m2",
        ),
        none("hfsc 8c39", "flows belong to classes by their customers, not by filters"),
    ]
}

/// `prio.json` (2cc2c3cb) and `drr.json` (3ab7ae8e).
fn bands() -> Vec<Case> {
    let map = "classes are of customers; there is no map from priorities to bands";
    let bands = "one class is a FIFO, and as many are allowed as there can be customers";
    vec![
        shows("prio ddd9", "prio limit=10p", "limit=10p"),
        none("prio aa71", HANDLE),
        none("prio db37", HANDLE),
        refuses("prio 39d8", "prio foorbar=1", "foorbar"),
        none("prio 5769", map),
        none("prio fe0f", map),
        none("prio 1f91", map),
        shows_else("prio d248", bands, "prio class.a.prio=0 class.a.others=true", "a.prio=0"),
        differs("prio 1d0e", bands, || {
            let classes: String = (0..1_024).map(|i| format!(" class.c{i}.prio={i}")).collect();
            Bench::new(&format!("prio{classes}"));
        }),
        none("prio 1971", CHANGE),
        none("prio d88a", HANDLE),
        none("prio 5948", HANDLE),
        none("prio 6c0a", HANDLE),
        none("prio 0175", HANDLE),
        shows("drr 0385", "drr", "quantum=1500B"),
        none("drr 2375", HANDLE),
        none("drr 3092", CLASS),
        none("drr 4009", HANDLE),
    ]
}

/// `fifo.json` (2cc2c3cb).
fn fifo() -> Vec<Case> {
    vec![
        agrees("fifo a519", || {
            assert!(Bench::new("fifo").queue.limit().is_some_and(|limit| limit.bytes().is_some()));
        }),
        shows("fifo 585c", "fifo limit=1000p", "limit=1000p"),
        none("fifo a86e", HANDLE),
        shows("fifo 9ac8", "fifo limit=3000B", "limit=3000B"),
        shows("fifo f4e6", "fifo limit=3000p", "limit=3000p"),
        none("fifo b1b1", HANDLE),
        refuses("fifo 8d5e", "fifo foorbar=1", "foorbar"),
        refuses("fifo 7787", "fifo foorbar=1", "foorbar"),
        agrees("fifo c4b6", || limit_later("fifo limit=3000B", 30)),
        agrees("fifo 3df6", || limit_later("fifo limit=1000p", 30)),
        refuses("fifo 7a67", "fifo limit=foo-bar", "limit"),
        none("fifo 1298", HANDLE),
        none("fifo 45a0", HANDLE),
        none("fifo 972b", HANDLE),
        none("fifo 4d39", HANDLE),
    ]
}
