//! Packets for a count of instructions: `instructions NAME PACKETS` runs so many through the router of that name, with ten
//! flows, once it has settled. `.ci/instructions` runs it under Valgrind, twice, and takes the difference.

mod common;

use common::{CORE_STATELESS, SETTLED};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [name, packets] = words.as_slice() else { return };
    let case = CORE_STATELESS.iter().find(|case| case.name == name).expect("a name of `CORE_STATELESS`");
    let packets: u32 = packets.parse().expect("a number of packets");
    let mut load = case.load(10);
    (0..SETTLED + packets).for_each(|_| load.arrive());
}
