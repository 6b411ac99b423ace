//! `apportion plot`: a figure of results, or its numbers, as a file.

use std::io::Write as _;

use apportion::plot::{Format, Request};

use crate::arguments::Plot;
use crate::export::to_file;
use crate::output;
use crate::status::Status;

pub fn plot(arguments: &Plot) -> anyhow::Result<Status> {
    // Check the format first: reading results can take a while.
    let format = Format::of(&arguments.out)?;
    let request =
        Request { kind: arguments.kind, point: arguments.point.clone(), metric: arguments.metric.clone() };
    let plotted = apportion::plot::plot(&arguments.run, &request)?;
    to_file(&arguments.out, arguments.force, |file| Ok(file.write_all(&plotted.content(format))?))?;
    output::print(&format!("figure: {}\n", arguments.out.display()))?;
    Ok(Status::SUCCESS)
}
