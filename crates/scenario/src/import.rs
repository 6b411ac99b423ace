//! Converts configurations of other programs to scenarios or gateway configurations.
//!
//! The result loads: it is read back before it is returned. A note, with the line, names each setting that
//! Apportion does not support; text that cannot be understood is refused. Formats follow the manuals and
//! example files of these programs.
//!
//! | file | holds |
//! |---|---|
//! | `file` | imported files, and notes on settings that were not taken |
//! | `report` | notes and problems, with their lines |
//! | `words` | lines of a shell as words, with variables and continuations |
//! | `units` | rates, times, sizes and percentages in the syntax of tc(8) |
//! | `tc` | commands of tc(8), and its output, as the queueing disciplines of devices |
//! | `netem`, `cake`, `qdisc` | the options of tc-netem(8), tc-cake(8) and others |
//! | `link` | an imported link, and its scenario or gateway |
//! | `containerlab` | impairments of containerlab |
//! | `sqm` | the configuration of sqm-scripts |
//! | `libreqos`, `shaped_devices` | the files of LibreQoS |

mod cake;
mod containerlab;
mod file;
mod libreqos;
mod link;
mod netem;
mod qdisc;
mod report;
mod shaped_devices;
mod sqm;
mod tc;
mod units;
mod words;

use std::io;
use std::path::Path;

use crate::files::read_text_file;
use crate::gateway::GatewayConfig;
use crate::load::load;
use crate::problem::{Place, Problem};

use file::comment_text;
use report::Report;

pub use file::{File, Note};

/// Longest file that is imported, in bytes. Chosen: 100,000 circuits with 160 bytes each.
pub const LONGEST: u64 = 16 << 20;

/// The program that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// LibreQoS: `ShapedDevices.csv`, with `network.json` and `lqos.conf` or without.
    Libreqos,
    /// sqm-scripts: `/etc/config/sqm`.
    Sqm,
    /// tc(8): commands, also in scripts and batch files, and the output of `tc qdisc show`.
    Tc,
    /// containerlab: commands `tools netem set`, and the output of `tools netem show`.
    Containerlab,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Libreqos, Self::Sqm, Self::Tc, Self::Containerlab];

    /// The kind's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libreqos => "libreqos",
            Self::Sqm => "sqm",
            Self::Tc => "tc",
            Self::Containerlab => "containerlab",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A phrase for its files.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Libreqos => "LibreQoS: ShapedDevices.csv, with network.json and lqos.conf or without",
            Self::Sqm => "sqm-scripts: /etc/config/sqm",
            Self::Tc => "tc: a script of commands, or the output of `tc qdisc show`",
            Self::Containerlab => {
                "containerlab: commands `tools netem set`, or the output of `tools netem show`"
            }
        }
    }

    /// The probable kind of the files, by their content.
    fn guess(files: &[File]) -> Option<Self> {
        let any = |is: fn(&File) -> bool| files.iter().any(is);
        if any(libreqos::is_one) {
            Some(Self::Libreqos)
        } else if any(sqm::is_one) {
            Some(Self::Sqm)
        } else if any(containerlab::is_one) {
            Some(Self::Containerlab)
        } else {
            any(tc::is_one).then_some(Self::Tc)
        }
    }
}

/// Options of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The program that wrote them; guessed from their content if not set.
    pub kind: Option<Kind>,
    /// Whether commands of tc become the configuration of a gateway instead of a scenario.
    pub gateway: bool,
    /// Name of the file of plans that the configuration of a gateway for LibreQoS refers to; `plans.csv` if empty.
    pub plans: String,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A scenario or the configuration of a gateway, in TOML, with comments that name the lines it came from.
    pub text: String,
    /// Whether it is the configuration of a gateway.
    pub is_gateway: bool,
    /// The file of plans, if the text names one.
    pub plans: Option<String>,
    /// Settings that were not taken, or changed, in the order of the files and their lines.
    pub notes: Vec<Note>,
}

/// Reads a file to import, of at most [`LONGEST`] bytes.
///
/// # Errors
/// The system's error, or that it is not a regular file, too long, or not text.
pub fn read(path: &Path) -> io::Result<String> {
    read_text_file(path, LONGEST)
}

/// Converts these files to a scenario or the configuration of a gateway.
///
/// # Errors
/// Everything that cannot be understood or cannot be expressed, in the order of the files and their lines.
pub fn import(files: &[File], options: &Options) -> Result<Imported, Vec<Problem>> {
    let refuse = |message: String| {
        let file = files.first().map_or_else(String::new, |file| file.name.clone());
        Err(vec![Problem { file, place: Place::Line(1), path: String::new(), message }])
    };
    let Some(kind) = options.kind.or_else(|| Kind::guess(files)) else {
        if files.iter().any(|file| file.text.lines().any(|line| line.starts_with("topology:"))) {
            let mend =
                "import what `containerlab tools netem show` prints, and name the nodes as ends of its links";
            return refuse(format!("a topology of containerlab is not read; {mend}"));
        }
        let known = Kind::ALL.map(|kind| format!("{} ({})", kind.name(), kind.describe()));
        return refuse(format!("nothing here says what wrote it; name it with --from: {}", known.join(", ")));
    };
    let mut report = Report::new(options.gateway || matches!(kind, Kind::Libreqos | Kind::Sqm));
    if let Some(file) = files.iter().find(|file| file.text.len() as u64 > LONGEST) {
        return refuse(format!("`{}` is longer than {LONGEST} bytes", file.name));
    }
    let written = match kind {
        Kind::Libreqos => {
            let plans = Some(options.plans.as_str()).filter(|name| !name.is_empty());
            libreqos::import(files, plans.unwrap_or("plans.csv"), &mut report)
        }
        Kind::Sqm => sqm::import(files, &mut report).map(|text| (text, None)),
        Kind::Tc => tc::import(files, &mut report).map(|text| (text, None)),
        Kind::Containerlab if options.gateway => {
            return refuse(
                "impairments of containerlab are links of a scenario; leave --gateway out".to_owned(),
            );
        }
        Kind::Containerlab => containerlab::import(files, &mut report).map(|text| (text, None)),
    };
    let is_gateway = report.is_gateway;
    let notes = report.into_notes()?;
    let Some((body, plans)) = written else {
        let said =
            notes.first().map_or_else(String::new, |note| format!(" (line {}: {})", note.line, note.message));
        let read = kind.describe();
        return refuse(format!(
            "there is nothing in it to import{said}; it is read as files of {read}; --from names others"
        ));
    };
    let text = header(files, &notes) + &body;
    match check(&text, is_gateway, plans.as_deref()) {
        Ok(()) => Ok(Imported { text, is_gateway, plans, notes }),
        Err(problems) => refuse(format!(
            "what follows from it is refused: {}",
            problems
                .first()
                .map_or_else(String::new, |problem| format!("{}: {}", problem.path, problem.message))
        )),
    }
}

/// Reads the result back.
fn check(text: &str, is_gateway: bool, plans: Option<&str>) -> Result<(), Vec<Problem>> {
    let read = |_: &Path| Ok(plans.unwrap_or_default().as_bytes().to_vec());
    let origin = Path::new("imported.toml");
    if is_gateway {
        GatewayConfig::load_with(&apportion_core::system::Catalog::default(), text, origin, &read).map(drop)
    } else {
        load(text, origin, &[], &read).map(drop)
    }
}

/// Maximum of notes that are repeated in the file itself. Chosen: one screen.
const MOST_REPEATED: usize = 40;

/// The comment at the top: the origin, and what is missing.
fn header(files: &[File], notes: &[Note]) -> String {
    let names: Vec<_> = files.iter().map(|file| comment_text(&file.name)).collect();
    let mut out = format!("# Imported by `apportion import` from {}.\n", names.join(", "));
    if !notes.is_empty() {
        out += "#\n# Not taken, or not as it was:\n";
        for note in notes.iter().take(MOST_REPEATED) {
            out += &format!("# - {}\n", comment_text(&note.to_string()));
        }
        if notes.len() > MOST_REPEATED {
            out += &format!(
                "# - and {} more, which were printed when it was imported\n",
                notes.len() - MOST_REPEATED
            );
        }
    }
    out + "\n"
}
