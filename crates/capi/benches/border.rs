//! The cost of the border to C: nanoseconds of one enqueue and one dequeue from a C program, compared with
//! the same calls from Rust, with a standing backlog of 2000 packets of 1000 flows.
//!
//! Two programs take turns: `border.c`, compiled here with `cc -O2` and linked with the static library, and
//! this one with `--rust`. Each figure is the minimum of all turns; both programs must forward the same
//! packets.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use apportion_core::label::Label;
use apportion_core::system::{LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Time};
use apportion_core::{Colour, DropReason, Ecn, FlowId, LabelKind, Packet, Protocol, Queue, Sink};

/// The queues measured, from the cheapest on.
const QUEUES: [&str; 6] = [
    "{ kind = 'fifo', limit = '1000000p' }",
    "{ kind = 'drr', limit = '1000000p' }",
    "{ kind = 'fq_codel', limit = '1000000p', memory_limit = '4000MB' }",
    "{ kind = 'red', limit = '1000000p', max_th = '900000p' }",
    "{ kind = 'csfq', limit = '1000000p' }",
    "{ kind = 'wf2q_plus', limit = '1000000p' }",
];
const ROUNDS: u64 = 2_000_000;
const TURNS: usize = 7;

/// The packet that a program in Rust would hand to a queue, with the same fields as
/// [`apportion_capi::Packet`].
#[derive(Clone, Copy)]
struct Held {
    handle: u64,
    flow: FlowId,
    size: u32,
    label: Label,
    ecn: Ecn,
    protocol: Protocol,
    colour: Colour,
    label_kind: Option<LabelKind>,
}

impl Packet for Held {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn protocol(&self) -> Protocol {
        self.protocol
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn colour(&self) -> Colour {
        self.colour
    }
    fn set_colour(&mut self, colour: Colour) {
        self.colour = colour;
    }
    fn label(&self, kind: LabelKind) -> Option<Label> {
        (self.label_kind == Some(kind)).then_some(self.label)
    }
    fn set_label(&mut self, kind: LabelKind, label: Label) {
        (self.label_kind, self.label) = (Some(kind), label);
    }
    fn clear_label(&mut self, kind: LabelKind) {
        if self.label_kind == Some(kind) {
            self.label_kind = None;
        }
    }
}

struct Discard;
impl Sink<Held> for Discard {
    fn dropped(&mut self, _: Time, packet: Held, _: DropReason) {
        black_box(packet.handle);
    }
    fn marked(&mut self, _: Time, _: &Held) {}
}

/// The same loop as in `border.c`.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn in_rust(text: &str, rounds: u64) {
    const PACKETS: u32 = 1 << 14;
    const FLOWS: u32 = 1_000;
    const BACKLOG: u32 = 2_000;
    let link = LinkContext::new(Rate::from_bit(8_000_000_000), 1, "queue");
    let mut queue: LinkQueue<Held> = apportion_scenario::queue::from_text(text).expect("valid").build(&link);
    let packet = |i: u32| Held {
        handle: u64::from(i),
        flow: FlowId((i.wrapping_mul(0x9e37_79b1) >> 7) % FLOWS),
        size: 1_000,
        label: Label::ZERO,
        ecn: Ecn::NotEct,
        protocol: Protocol::Udp,
        colour: Colour::Unmarked,
        label_kind: None,
    };
    let packets: Vec<_> = (0..PACKETS).map(packet).collect();
    for packet in &packets[..BACKLOG as usize] {
        queue.enqueue(Time::ZERO, *packet, &mut Discard);
    }
    let (mut sum, mut now) = (0, 0);
    let start = std::time::Instant::now();
    for i in 0..rounds {
        now += 1_000;
        let time = Time::from_nanos(now);
        queue.enqueue(time, packets[((u64::from(BACKLOG) + i) % u64::from(PACKETS)) as usize], &mut Discard);
        if let Some(packet) = queue.dequeue(time, &mut Discard) {
            sum += packet.handle;
        }
    }
    println!("{:.3} {sum}", start.elapsed().as_nanos() as f64 / rounds as f64);
}

/// Compiles the C half against the static library alone, built as the documentation describes and as packages
/// are: with the profile `dist`, from which the profile of benches inherits. A build with the profile `bench`
/// would leave no library.
fn c_program(this: &Path) -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("border");
    let target = this.ancestors().nth(3).expect("TARGET/PROFILE/deps/NAME");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--profile", "dist", "-p", "apportion-capi", "--lib", "--crate-type", "staticlib"]);
    assert!(cargo.status().is_ok_and(|status| status.success()), "the static library is built");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    cc.arg("-I").arg(crate_dir.join("include")).arg(crate_dir.join("benches/border.c"));
    cc.arg(target.join("dist/libapportion_capi.a")).args(["-lpthread", "-ldl", "-lm"]);
    assert!(cc.status().is_ok_and(|status| status.success()), "this bench needs a C compiler (cc)");
    program
}

/// Returns the nanoseconds per packet, and a checksum of the packets forwarded.
fn measure(program: &Path, words: &[&str]) -> (f64, String) {
    let output = Command::new(program).args(words).output().expect("it can be started");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let (nanos, sum) = said.trim().split_once(' ').expect("two numbers");
    (nanos.parse().expect("a number"), sum.to_owned())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, text, rounds] = arguments.as_slice()
        && flag == "--rust"
    {
        return in_rust(text, rounds.parse().expect("a number"));
    }
    let this = std::env::current_exe().expect("a bench has a path");
    let c = c_program(&this);
    let rounds = ROUNDS.to_string();
    println!("{:>8} {:>8} {:>6}  queue", "Rust ns", "C ns", "ratio");
    for text in QUEUES {
        let (mut least_rust, mut least_c) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            let (rust, forwarded_by_rust) = measure(&this, &["--rust", text, &rounds]);
            let (c, forwarded_by_c) = measure(&c, &[text, &rounds]);
            assert_eq!(forwarded_by_rust, forwarded_by_c, "{text}: both halves do the same");
            (least_rust, least_c) = (least_rust.min(rust), least_c.min(c));
        }
        println!("{least_rust:8.1} {least_c:8.1} {:6.2}  {text}", least_c / least_rust);
    }
}
