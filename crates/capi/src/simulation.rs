//! Scenarios with transport stacks of the caller.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::slice_from_raw_parts_mut;
use std::sync::{Arc, Mutex, PoisonError};

use apportion::{Retain, Run, RunError, ScenarioBuilder};
use apportion_core::param::{Entry, Role, Traits};

use crate::queue::{discard, text};
use crate::stack::{Host, Session, Stack};
use crate::status::Status;

/// A scenario to simulate. All fields may be zero except `scenario`.
#[derive(Debug)]
#[repr(C)]
pub struct Simulation {
    /// The scenario in TOML, as in a file. Files that it refers to are relative to the current folder. UTF-8.
    pub scenario: *const c_char,
    /// The transport stacks, each under its own name. Null if there are none.
    pub stacks: *const Stack,
    /// The length of `stacks`.
    pub stack_count: usize,
    /// The number of replications of each point, each with its own seed; 0 counts as 1. With more than one,
    /// each has a perturbed copy, which shows where results depend on phases.
    pub seeds: u64,
    /// The number of concurrent replications; 0 counts as 1. With 1, all functions of the stacks are called on
    /// the thread that called `apportion_simulate`. With more, functions for different ends may be called at
    /// the same time from different threads, and `open` too; those for the ends of one connection never are.
    pub jobs: usize,
    /// The folder in which the results get their own folder, `1` for the first run and `2` for the next, with
    /// tables, a report, and captures of links with `pcap = true`. Null: nothing is written. UTF-8.
    pub folder: *const c_char,
    /// Non-zero: run even if the estimate exceeds a day or 2 GB.
    pub force: u8,
}

/// Simulates a scenario whose flows may use the caller's transport stacks: `transport = "NAME"`.
///
/// Writes a string into `text`, which `apportion_text_free` frees and the caller may change before. With
/// `APPORTION_STATUS_OK` it has the results, the JSON lines of `apportion run --json`; they depend on
/// scenario, seeds and stacks only. With `APPORTION_STATUS_ERROR_SIMULATION` it has the reason in English: a
/// line for each problem of the scenario, or what a stack returned that is not allowed. The folder gets
/// nothing then. With other errors it may be null. Nothing of `simulation` is used after the function
/// returns, except that names of stacks are kept.
///
/// # Safety
/// `simulation` is null or points to an `apportion_simulation` whose strings end with a zero and whose `stacks`
/// has `stack_count` stacks, with functions of these types; `text` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_simulate(simulation: *const Simulation, text: *mut *mut c_char) -> Status {
    if text.is_null() {
        return Status::ErrorNull;
    }
    // SAFETY: not null, and the caller promises room for a pointer.
    unsafe { text.write(std::ptr::null_mut()) };
    // SAFETY: promised by the caller.
    let Some(simulation) = (unsafe { simulation.as_ref() }) else { return Status::ErrorNull };
    // SAFETY: promised by the caller.
    let (status, said) = match catch_unwind(AssertUnwindSafe(|| unsafe { simulate(simulation) })) {
        Ok(Ok(results)) => (Status::Ok, results),
        Ok(Err(reason)) => (Status::ErrorSimulation, reason),
        Err(panic) => (discard(panic), "the simulator panicked, which is a defect of the library".to_owned()),
    };
    // SAFETY: as above.
    unsafe { text.write(give(&said)) };
    status
}

/// Frees a text of `apportion_simulate`. Does nothing if `text` is null.
///
/// # Safety
/// `text` is null, or comes from `apportion_simulate` and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: promised by the caller.
        drop(unsafe { take(text) });
    }
}

/// The bytes before a text, which have the length of its memory. The length of the string would not do: callers
/// cut it into lines with `strtok`.
const PREFIX: usize = size_of::<usize>();

/// A string for the caller, without the zeros of `text`.
fn give(text: &str) -> *mut c_char {
    let mut memory = vec![0; PREFIX];
    memory.extend(text.bytes().filter(|&byte| byte != 0));
    memory.push(0);
    let length = memory.len();
    memory[..PREFIX].copy_from_slice(&length.to_ne_bytes());
    let start = Box::into_raw(memory.into_boxed_slice()).cast::<c_char>();
    // SAFETY: the memory is longer than `PREFIX`.
    unsafe { start.add(PREFIX) }
}

/// The memory of a string, which ends with it.
///
/// # Safety
/// `text` comes from [`give`], and this function has not been called with it.
unsafe fn take(text: *mut c_char) -> Box<[u8]> {
    // SAFETY: `give` returned the address behind `PREFIX` bytes.
    let start = unsafe { text.cast::<u8>().sub(PREFIX) };
    // SAFETY: they have the length.
    let length = usize::from_ne_bytes(unsafe { start.cast::<[u8; PREFIX]>().read() });
    // SAFETY: it was a boxed slice of this length.
    unsafe { Box::from_raw(slice_from_raw_parts_mut(start, length)) }
}

/// # Safety
/// As for `apportion_simulate`.
unsafe fn simulate(simulation: &Simulation) -> Result<String, String> {
    // SAFETY: promised by the caller.
    let scenario = unsafe { text("scenario", simulation.scenario) }?.ok_or("scenario is null")?;
    // SAFETY: promised by the caller.
    let folder = unsafe { text("folder", simulation.folder) }?;
    let session = Arc::new(Session::default());
    let mut catalog = apportion::catalogue::standard();
    let stacks = match simulation.stacks.is_null() {
        true if simulation.stack_count > 0 => {
            return Err("stacks is null, stack_count is not zero".to_owned());
        }
        true => &[],
        // SAFETY: not null, and the caller promises this number.
        false => unsafe { std::slice::from_raw_parts(simulation.stacks, simulation.stack_count) },
    };
    for (at, stack) in stacks.iter().enumerate() {
        // SAFETY: promised by the caller.
        let name = unsafe { text("name", stack.name) }.and_then(|name| match name {
            None | Some("") => Err("it has no name".to_owned()),
            Some(name) => Ok(name),
        });
        let name = name.map_err(|why| format!("stacks[{at}]: {why}"))?;
        let host = Host::new(name, stack, &session).map_err(|why| format!("stack `{name}`: {why}"))?;
        let added = catalog.register_stack(entry(name), move |_| Ok(host.clone()));
        added.map_err(|error| error.to_string())?;
    }
    let scenario = ScenarioBuilder::from_text(scenario).catalog(&catalog).load();
    let scenario = scenario.map_err(|error| error.to_string())?;
    let seeds = simulation.seeds.max(1);
    let run = Run::new(&scenario)
        .seeds(seeds)
        .jobs(simulation.jobs.max(1))
        .force(simulation.force != 0)
        .cancel(&session.cancel)
        .retain(Retain::of(seeds.saturating_mul(scenario.points().len() as u64)));
    let staged = folder.into_iter().fold(run, Run::folder).stage();
    // A run that failed leaves no folder: `staged` is dropped.
    if let Some(failure) = session.failure() {
        return Err(failure);
    }
    let staged = staged.map_err(|error| match error {
        RunError::TooLarge { estimate, .. } => {
            format!(
                "it would take {estimate}, which is more than a day or 2 GB; set force to run it all the same"
            )
        }
        error => error.to_string(),
    })?;
    Ok(staged.publish().map_err(|error| error.to_string())?.json_lines())
}

/// The entry of a stack of this name. Entries live as long as the program, so each name has one.
fn entry(name: &str) -> &'static Entry {
    static ENTRIES: Mutex<BTreeMap<String, &'static Entry>> = Mutex::new(BTreeMap::new());
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    entries.entry(name.to_owned()).or_insert_with(|| {
        Box::leak(Box::new(Entry {
            name: Box::leak(name.to_owned().into_boxed_str()),
            role: Role::Stack,
            summary: "A transport stack in C.",
            reference: "–",
            cost: "some calls of C for each packet",
            params: &[],
            traits: Traits::NONE,
        }))
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_text_that_the_caller_cuts_is_freed_whole() {
        let text = give("one\0\ntwo");
        // SAFETY: `give` made a string of seven bytes.
        unsafe {
            assert_eq!(CStr::from_ptr(text), c"one\ntwo");
            text.add(3).write(0);
            assert_eq!(take(text).len(), PREFIX + 8);
        }
    }
}
