//! Runs of scenarios with the stacks of this crate.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use apportion_core::system::Catalog;
use apportion_runtime::outcome::{FlowOutcome, Outcome};
use apportion_sim::capture::LinkCapture;
use apportion_sim::{Detail, Simulation};

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    apportion_stacks::register(&mut catalog).unwrap();
    catalog
}

/// Flows over a link of 20 Mb/s and 40 ms, with these keys of the link, for 20 s.
pub fn text(link: &str, flows: &[&str]) -> String {
    let flows: String = flows
        .iter()
        .enumerate()
        .map(|(at, keys)| format!("[flow.f{at}]\nfrom = \"a\"\nto = \"b\"\n{keys}\n"))
        .collect();
    format!(
        "seed = 7\nstop = \"20s\"\n[link.wire]\nfrom = \"a\"\nto = \"b\"\nwatch = true\nrate = \"20Mbit\"\ndelay = \"20ms\"\n{link}\n{flows}"
    )
}

pub fn outcome(text: &str) -> Outcome {
    run(text, 7, None)
}

fn run(text: &str, seed: u64, capture: Option<LinkCapture>) -> Outcome {
    let suite =
        apportion_scenario::load_with(&catalog(), text, Path::new("x"), &[], &|path| std::fs::read(path))
            .unwrap();
    let scenario = &suite.points[0].scenario;
    let mut capture = capture.map(Box::new);
    let mut captures = |at: usize| if at == 0 { capture.take() } else { None };
    let mut simulation = Simulation::new(scenario, seed, Detail::Full, &mut captures).unwrap();
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.finish_captures().unwrap();
    simulation.outcome()
}

pub fn mbps(flow: &FlowOutcome) -> f64 {
    flow.goodput.unwrap().bits() as f64 / 20e6
}

/// A file that is shared with its writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The outcome of a run with this seed as text, and the capture of its link.
pub fn captured(text: &str, seed: u64) -> (String, Vec<u8>) {
    let file = Shared::default();
    let outcome = run(text, seed, Some(LinkCapture::new(Box::new(file.clone())).unwrap()));
    let bytes = std::mem::take(&mut *file.0.lock().unwrap());
    (format!("{outcome:?}"), bytes)
}
