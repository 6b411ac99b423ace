//! Web pages in scenario files.

use std::sync::Arc;

use apportion_core::units::{Bytes, Span};

use crate::files::Files;
use crate::keys::Fields;
use crate::problem::Problems;
use crate::web::{MAX_OBJECTS, Objects, Web};
use crate::written_sizes::Written;

/// The sizes of a source `web` that are tables.
pub(crate) struct WrittenSizes<'f> {
    main: Option<Written<'f>>,
    object: Option<Written<'f>>,
}

impl<'f> WrittenSizes<'f> {
    pub(crate) fn read(source: &Fields<'f>, files: &Files<'_>, problems: &mut Problems) -> Self {
        let mut read = |name: &str| Written::read(name, source, files, problems);
        Self { main: read("main_size"), object: read("object_size") }
    }
}

/// The source of member `i`.
pub(crate) fn web(
    fields: &Fields<'_>,
    sizes: &WrittenSizes<'_>,
    i: u64,
    problems: &mut Problems,
) -> Option<Arc<Web>> {
    let mut web = fields.read(Web::from_args, i, problems)?;
    if let Some(main) = &sizes.main {
        web.main_size = main.at(i, problems)?;
    }
    if let Some(object) = &sizes.object {
        web.object_size = object.at(i, problems)?;
    }
    if web.users_per_second.is_some() != web.life.is_some() {
        let message =
            "users who come and go have both: write for example users_per_second = 2, life = \"60s\"";
        problems.add(fields.place, &fields.path, message);
        return None;
    }
    if matches!(web.objects, Objects::Fixed(objects) if objects > MAX_OBJECTS) {
        let message = format!("a page has at most {MAX_OBJECTS}; write for example 70");
        fields.refuse("objects", message, problems);
        return None;
    }
    request(fields, i, problems)?;
    Some(Arc::new(web))
}

/// The source `probe` of member `i`.
pub(crate) fn probe(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Arc<Web>> {
    let request = request(fields, i, problems)?;
    let per_second: f64 = fields.get("per_second", i, problems)?;
    if per_second > MAX_PROBES {
        let message = format!("{per_second} a second are a load and no probe; write at most {MAX_PROBES}");
        fields.refuse("per_second", message, problems);
        return None;
    }
    Some(Arc::new(Web::probe(request, Span::from_secs_f64(1.0 / per_second))))
}

/// Maximum of probes a second. Chosen: the draft on responsiveness sends up to a hundred, and takes at most 5
/// % of a path.
const MAX_PROBES: f64 = 1_000.0;

fn request(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Bytes> {
    let request = fields.get("request", i, problems)?;
    if (MIN_REQUEST..=MAX_REQUEST).contains(&request) {
        return Some(request);
    }
    let message = "a request is one packet of 40 to 1500 bytes; write for example \"350B\"";
    fields.refuse("request", message, problems);
    None
}

/// IPv4 and TCP headers, and a packet of Ethernet.
const MIN_REQUEST: Bytes = Bytes::new(40);
const MAX_REQUEST: Bytes = Bytes::new(1_500);
