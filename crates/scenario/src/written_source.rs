//! Sources of flows in scenario files, for all members of a group.

use std::path::Path;
use std::sync::Arc;

use apportion_core::param::Variant;
use apportion_core::units::{Bytes, Span, Time};

use crate::capture::Capture;
use crate::files::{self, Files};
use crate::keys::Fields;
use crate::media_sources;
use crate::model::{Cbr, File, Frames, MAX_ARRIVALS, OnOff, Poisson, ShortFlows, Source, Start, Video};
use crate::problem::Problems;
use crate::tables::MAX_FLOWS;
use crate::written_sizes::Written;
use crate::written_web::{WrittenSizes, probe, web};

/// Shortest period of on-off sources. Chosen: a full packet takes 12 µs at 1 Gb/s; each period costs two
/// draws.
const SHORTEST_PERIOD: Span = Span::from_micros(10);

/// The source of a group.
pub(crate) struct WrittenSource<'f> {
    pub kind: &'static Variant,
    pub fields: Fields<'f>,
    /// The data that it reads from a file.
    pub file: Option<FromFile>,
    /// Distribution of sizes, if the source names one.
    sizes: Option<Written<'f>>,
    web: WrittenSizes<'f>,
}

/// The data that a source reads from a file.
pub(crate) enum FromFile {
    Frames(Arc<[Bytes]>),
    Packets(Arc<[(Span, Bytes)]>),
    Segments(Arc<[Arc<[Bytes]>]>),
}

impl<'f> WrittenSource<'f> {
    /// Reads the files that `fields` name.
    pub(crate) fn read(
        kind: &'static Variant,
        fields: Fields<'f>,
        files: &Files<'_>,
        problems: &mut Problems,
    ) -> Self {
        let file = read_file(kind, &fields, files, problems);
        let sizes = Written::read("sizes", &fields, files, problems);
        let web = WrittenSizes::read(&fields, files, problems);
        Self { kind, fields, file, sizes, web }
    }

    /// The source of member `i`.
    pub(crate) fn at(&self, i: u64, problems: &mut Problems) -> Option<Source> {
        let fields = &self.fields;
        Some(match self.kind.name {
            "greedy" => Source::Greedy,
            "file" => Source::File(fields.read(File::from_args, i, problems)?),
            "cbr" => Source::Cbr(fields.read(Cbr::from_args, i, problems)?),
            "poisson" => Source::Poisson(fields.read(Poisson::from_args, i, problems)?),
            "on_off" => {
                let on_off = fields.read(OnOff::from_args, i, problems)?;
                for (key, period) in [("on", on_off.on), ("off", on_off.off)] {
                    if period.mean < SHORTEST_PERIOD {
                        let message =
                            "periods below 10us are shorter than packets; write for example \"100ms\"";
                        fields.refuse(key, message, problems);
                    }
                }
                Source::OnOff(on_off)
            }
            "short_flows" => {
                let mut short_flows = fields.read(ShortFlows::from_args, i, problems)?;
                if let Some(sizes) = &self.sizes {
                    short_flows.sizes = sizes.at(i, problems)?;
                }
                Source::ShortFlows(short_flows)
            }
            "probe" => Source::Web(probe(fields, i, problems)?),
            "web" => Source::Web(web(fields, &self.web, i, problems)?),
            "video" => {
                let mut video = fields.read(Video::from_args, i, problems)?;
                media_sources::frames_per_second(fields, i, problems)?;
                if fields.item("file").is_some() {
                    let Some(FromFile::Frames(frames)) = &self.file else { return None };
                    video.frames = Frames::Trace(frames.clone());
                }
                Source::Video(video)
            }
            name if media_sources::is_personal(name) => {
                let sizes = match &self.file {
                    Some(FromFile::Segments(sizes)) => Some(sizes),
                    // The file was refused before.
                    _ if name == "dash" && fields.item("file").is_some() => return None,
                    _ => None,
                };
                media_sources::read(name, fields, sizes, i, problems)?
            }
            _ => match &self.file {
                Some(FromFile::Packets(packets)) => Source::Replay { packets: packets.clone() },
                _ => return None,
            },
        })
    }

    /// Refuses more short flows than possible; a formula may exceed the maximum in one member only.
    pub(crate) fn check_arrivals(
        &self,
        source: &Source,
        start: Start,
        stop: Time,
        problems: &mut Problems,
    ) -> Option<()> {
        let (Start::At(first) | Start::Between(first, _)) = start;
        let length = stop.as_secs_f64() - first.as_secs_f64();
        let (per_second, key, what) = match source {
            Source::ShortFlows(short_flows) => (short_flows.per_second, "per_second", "connections"),
            Source::Web(web) => {
                let longest = web.users().map_or(f64::INFINITY, |users| users.per_second * length);
                let connections = web.population().min(longest) * f64::from(web.parallel);
                if connections > MAX_FLOWS as f64 {
                    let message = format!(
                        "users at a time, on average, have {connections:.0} connections, and {MAX_FLOWS} is the maximum; write a shorter life, or \
                         fewer users"
                    );
                    self.fields.refuse("life", message, problems);
                    return None;
                }
                let Some(users) = web.users() else { return Some(()) };
                (users.per_second, "users_per_second", "users")
            }
            _ => return Some(()),
        };
        if per_second * length <= f64::from(MAX_ARRIVALS) {
            return Some(());
        }
        // Cut to thousandths, so that the named value is allowed.
        let most = (f64::from(MAX_ARRIVALS) / length * 1e3).floor() / 1e3;
        let message = format!(
            "{per_second} a second from {first} to {stop} are more than {MAX_ARRIVALS} {what}; write at most \
             {most}, or a shorter time"
        );
        self.fields.refuse(key, message, problems);
        None
    }
}

/// The data that a source reads from a file, if it does.
fn read_file(
    kind: &Variant,
    source: &Fields<'_>,
    files: &Files<'_>,
    problems: &mut Problems,
) -> Option<FromFile> {
    let path = Path::new(source.text("file")?);
    let read = match kind.name {
        "video" => files.text(path).and_then(|text| files::frames(&text)).map(FromFile::Frames),
        "dash" => files.text(path).and_then(|text| files::segments(&text)).map(FromFile::Segments),
        _ => {
            files.bytes(path).and_then(|bytes| Capture::parse(&bytes)).map(|Capture { packets, remarks }| {
                for remark in remarks {
                    source.note("file", format!("`{}`: {remark}", path.display()), problems);
                }
                FromFile::Packets(packets)
            })
        }
    };
    read.map_err(|message| source.refuse("file", format!("`{}`: {message}", path.display()), problems)).ok()
}
