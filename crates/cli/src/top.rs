//! `apportion top`: the page of a run or a gateway in a terminal.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | the addresses of pages |
//! | `client` | the request, with limits of time and size |
//! | `answer` | the JSON of both pages |
//! | `model` | what is shown |
//! | `format` | numbers and texts in a bounded width |
//! | `sheet` | a table, in order and in columns |
//! | `views` | flows, links, customers |
//! | `state` | the state of the screen: answers and keys |
//! | `draw` | the state as lines |
//! | `screen` | the terminal |
//! | `suspension` | Ctrl-Z |

pub mod address;
mod answer;
mod client;
mod draw;
mod format;
mod model;
mod screen;
mod sheet;
mod state;
mod suspension;
mod views;

use std::io::{IsTerminal as _, stdout};

use anyhow::{anyhow, bail};
use ratatui::crossterm::terminal;

use self::address::Address;
use self::model::Seen;
use crate::arguments;
use crate::output;
use crate::status::Status;

/// Columns of a table that is not for a terminal: all of its columns fit.
const WIDE: usize = 400;

pub fn top(arguments: &arguments::Top) -> anyhow::Result<Status> {
    let (address, seen) = find(arguments.address.as_ref())?;
    let is_terminal = stdout().is_terminal();
    // A terminal of this name cannot move its cursor.
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    if is_terminal && !is_dumb && !arguments.once {
        return screen::show(&address, seen, arguments.interval);
    }
    let columns = terminal::size().ok().filter(|_| is_terminal).map_or(WIDE, |(columns, _)| columns.into());
    output::print(&draw::text(&seen, columns))?;
    Ok(Status::SUCCESS)
}

/// The page at this address, or else at the default ones, and its first answer.
fn find(address: Option<&Address>) -> anyhow::Result<(Address, Seen)> {
    if let Some(address) = address {
        let failed = |why| {
            anyhow!(
                "no answer from {}: {why}; `apportion run SCENARIO --watch` prints the address of its page, and a gateway's is `metrics` in its configuration",
                address.url()
            )
        };
        return Ok((address.clone(), client::ask(address, 0).map_err(failed)?));
    }
    let mut tried = Vec::new();
    for (address, what) in Address::defaults() {
        match client::ask(&address, 0) {
            Ok(seen) => return Ok((address, seen)),
            Err(why) => tried.push(format!("{} ({what}): {why}", address.url())),
        }
    }
    bail!(
        "no page answers: {}; start `apportion run SCENARIO --watch`, or a gateway with `metrics = \"127.0.0.1:9617\"`, or name \
         the address of another page",
        tried.join(", ")
    )
}
