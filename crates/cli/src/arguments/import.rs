//! The arguments of `apportion import`.

use std::path::PathBuf;

use apportion::import::Kind;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

#[derive(Args, Debug)]
pub struct Import {
    /// Files of one program, such as ShapedDevices.csv network.json, /etc/config/sqm or a script with commands of tc; - for standard input
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Format of the files [default: by their content]
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    pub from: Option<Kind>,
    /// Convert tc commands to a gateway rather than a scenario; LibreQoS and sqm-scripts always become a gateway
    #[arg(long)]
    pub gateway: bool,
    /// Write to this file instead of printing; customer plans go into a .csv file beside it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite the files
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Names of the kinds of import.
fn kinds() -> impl TypedValueParser<Value = Kind> {
    let known = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.describe()));
    PossibleValuesParser::new(known).try_map(|name| Kind::named(&name).ok_or("there is no such kind"))
}
