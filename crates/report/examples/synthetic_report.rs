//! Writes reports of made-up runs, to view: `cargo run --example synthetic_report -- DIR`.

use std::path::PathBuf;

use apportion_report::{Contents, Provenance, summary, write};

#[path = "../tests/it/synthetic.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("usage: synthetic_report DIR")?);
    let mut interrupted = synthetic::quickstart(&[7]);
    interrupted.complete = false;
    interrupted.points[3].outcomes.clear();
    for (name, run) in [
        ("quickstart", synthetic::quickstart(&[7, 8, 9, 10, 11])),
        ("dues", synthetic::with_dues(synthetic::quickstart(&[7, 8]))),
        ("weighted", synthetic::weighted(&[7])),
        ("thirty", synthetic::thirty(&[7, 8])),
        ("long_sweep", synthetic::long_sweep(500)),
        ("large", synthetic::large(&[7, 8])),
        ("interrupted", interrupted),
    ] {
        write(&dir.join(name), &run, Contents::of(1), &Provenance::default())?;
        #[expect(clippy::print_stdout, reason = "an example may show what it did")]
        {
            println!("{}", summary(&run));
        }
    }
    Ok(())
}
