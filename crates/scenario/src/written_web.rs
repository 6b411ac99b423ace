//! Web pages as scenario files have them.

use std::sync::Arc;

use apportion_core::units::{Bytes, Span};

use crate::files::Files;
use crate::keys::Fields;
use crate::problem::Problems;
use crate::sizes::Sizes;
use crate::web::{MAX_OBJECTS, Objects, Users, Web};
use crate::written_sizes::Written;

/// The sizes of a source `web` that say more than a word.
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
    let lognormal = |median: u64, sigma: f64, least: u64| Sizes::Lognormal {
        median: Bytes::new(median),
        sigma,
        least: Bytes::new(least),
        most: Some(Bytes::new(2_000_000)),
    };
    // e^8.35 and e^6.17.
    let main =
        sizes.main.as_ref().map_or_else(|| Some(lognormal(4_230, 1.37, 100)), |own| own.at(i, problems))?;
    let object =
        sizes.object.as_ref().map_or_else(|| Some(lognormal(478, 2.36, 50)), |own| own.at(i, problems))?;
    let per_second = fields.get("users_per_second", i, problems);
    let life = fields.get("life", i, problems);
    let users = match (per_second, life) {
        (None, None) => None,
        (Some(per_second), Some(life)) => Some(Users { per_second, life }),
        _ => {
            let message =
                "users who come and go have both: write for example users_per_second = 2, life = \"60s\"";
            problems.add(fields.place, &fields.path, message);
            return None;
        }
    };
    let objects = match fields.item("objects") {
        Some(_) => {
            let objects: u32 = fields.get("objects", i, problems)?;
            if objects > MAX_OBJECTS {
                fields.refuse(
                    "objects",
                    format!("a page has at most {MAX_OBJECTS}; write for example 70"),
                    problems,
                );
                return None;
            }
            Objects::Fixed(objects)
        }
        None => Objects::Pareto,
    };
    let request = request(fields, i, problems)?;
    let parallel = fields.get("parallel", i, problems)?;
    let think = fields.get("think", i, problems)?;
    Some(Arc::new(Web { users, main, object, objects, parallel, request, think, is_probe: false }))
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

/// Probes in a second. Chosen: the draft on responsiveness sends up to a hundred, and takes 5 % of a path at most.
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
