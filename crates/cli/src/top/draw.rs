//! The screen as lines: a heading, the table of a view, and what keys do.

use std::time::Duration;

use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};

use super::format::{BAR, UNKNOWN, bar, clip, count, percent, rate, time, width};
use super::model::{Link, Seen};
use super::sheet::{Cell, Order, Padded};
use super::state::{Mode, State};
use super::views::View;

/// The smallest screen with a table.
const NARROWEST: usize = 24;
const LOWEST: usize = 8;
/// The shortest part of a message that is shown behind the address.
const SHORTEST: usize = 22;
/// Fractions of its entitlement below which the bar of a flow is red and yellow. The report counts 90 % as its
/// share.
const POOR: f64 = 0.5;
const REACHED: f64 = 0.9;

/// The lines of the screen, of this size, at `now`.
pub fn lines(
    state: &mut State,
    now: Duration,
    columns: usize,
    rows: usize,
    has_colours: bool,
) -> Vec<Line<'static>> {
    if columns < NARROWEST || rows < LOWEST {
        return vec![Line::from(clip("enlarge the window", columns))];
    }
    state.columns = columns;
    if state.mode == Mode::Help {
        return help(columns, rows);
    }
    let mut lines = vec![first_line(state, now, columns)];
    lines.extend(heading(&state.seen, columns).into_iter().map(Line::from));
    // A low screen shows rows rather than more of the heading.
    lines.truncate(rows - LOWEST + 3);
    lines.push(tabs(state, columns));
    let hidden = table(state, &mut lines, columns, rows, has_colours);
    lines.resize(rows - 1, Line::default());
    lines.push(Line::from(clip(&footer(state, hidden), columns)).reversed());
    lines
}

/// The address, and whether what is shown is old.
fn first_line(state: &State, now: Duration, columns: usize) -> Line<'static> {
    let mut spans = vec![Span::from(clip(&format!("apportion top  {}", state.url), columns)).bold()];
    let silence = state.silence(now).map(|(seconds, why)| format!(" no answer since {seconds} s: {why} "));
    let states = state.is_paused.then(|| " PAUSED ".to_owned()).into_iter().chain(silence);
    for text in states {
        let left = columns.saturating_sub(spans.iter().map(Span::width).sum());
        // The address is less important than that it is silent.
        if left < SHORTEST.min(width(&text) + 2) {
            spans.clear();
        } else {
            spans.push(Span::from("  "));
        }
        let left = columns.saturating_sub(spans.iter().map(Span::width).sum());
        spans.push(Span::from(clip(&text, left)).reversed());
    }
    Line::from(spans)
}

/// Returns the summary of the run or gateway in at most two lines, and the use of the link or of both directions.
fn heading(seen: &Seen, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in &seen.said {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let separator = if line.is_empty() { "" } else { "; " };
        if line.is_empty() || width(line) + width(part) + 3 <= columns || last == 1 {
            *line += &format!("{separator}{part}");
        } else {
            *line += ";";
            lines.push(part.clone());
        }
    }
    let is_shown = |link: &&Link| seen.is_gateway || seen.link.as_ref() == Some(&link.name);
    let names =
        seen.links.iter().filter(is_shown).map(|link| width(&link.name)).max().unwrap_or(0).min(columns / 4);
    lines.extend(seen.links.iter().filter(is_shown).map(|link| use_of(link, names, columns)));
    lines.into_iter().map(|line| clip(&line, columns)).collect()
}

/// The use of a link, with as many of its numbers as there is room for.
fn use_of(link: &Link, names: usize, columns: usize) -> String {
    let of = |number: Option<f64>, text: fn(f64) -> String| number.map_or_else(|| UNKNOWN.to_owned(), text);
    let used = link.used();
    let mut parts = vec![
        // A wide screen has a long bar.
        format!("{} {:>7}", bar(used.unwrap_or(0.0), (columns / 8).clamp(BAR, 3 * BAR)), of(used, percent)),
        format!("{} of {}", of(link.sent, rate), of(link.capacity, rate)),
    ];
    match (link.median, link.high) {
        (Some(median), Some(high)) => {
            parts.extend([format!("sojourn p95 {}", time(high)), format!("p50 {}", time(median))]);
        }
        _ => parts.push(format!("sojourn {}", of(link.mean, time))),
    }
    let counts = [("backlog", link.backlog), ("drops", link.drops), ("marks", link.marks)];
    parts.extend(counts.into_iter().map(|(name, number)| format!("{name} {}", of(number, count))));
    let name = clip(&link.name, names);
    let mut line = name.clone() + &" ".repeat(names - width(&name));
    for part in parts {
        if width(&line) + width(&part) + 2 > columns {
            break;
        }
        line += &format!("  {part}");
    }
    line
}

/// The views, of which one is chosen, and the filter.
fn tabs(state: &State, columns: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut left = columns;
    for view in View::of(&state.seen) {
        let title = view.title(&state.seen);
        let is_chosen = *view == state.view;
        let text = clip(&if is_chosen { format!("[{title}] ") } else { format!(" {title}  ") }, left);
        left -= width(&text);
        spans.push(if is_chosen { Span::from(text).bold() } else { Span::from(text) });
    }
    if !state.filter.is_empty() || state.mode == Mode::Filter {
        spans.push(Span::from(clip(&format!("filter: {}", state.filter), left)).bold());
    }
    Line::from(spans)
}

/// Adds the titles and the rows that fit. Returns the title that the rows are sorted by, if it does not fit.
fn table(
    state: &mut State,
    lines: &mut Vec<Line<'static>>,
    columns: usize,
    rows: usize,
    has_colours: bool,
) -> Option<String> {
    let page = rows.saturating_sub(lines.len() + 2);
    let sheet = state.sheet();
    let listed = sheet.len();
    let scroll = state.scroll.fitted(listed, page);
    let shown = scroll.first..(scroll.first + page).min(listed);
    let (titles, found) = sheet.lines(columns, state.order(), shown);
    let pad = " ".repeat(columns.saturating_sub(width(&titles)));
    lines.push(Line::from(format!("{titles}{pad}")).reversed());
    if listed == 0 {
        let filter = &state.filter;
        let text =
            if filter.is_empty() { "nothing yet".to_owned() } else { format!("no name contains `{filter}`") };
        lines.push(Line::from(clip(&text, columns)));
    }
    let is_share = state.view != View::Links;
    for (at, row) in found.into_iter().enumerate() {
        let spans = row.into_iter().map(|cell| styled(cell, is_share && has_colours));
        let line = Line::from(spans.collect::<Vec<_>>());
        lines.push(if scroll.first + at == scroll.selected { line.reversed() } else { line });
    }
    let hidden = sheet.hidden(columns, state.order());
    state.scroll = scroll;
    hidden
}

/// A cell; a bar of a share has a colour that repeats its number.
fn styled((cell, text): Padded<'_>, has_colours: bool) -> Span<'static> {
    let colour = match cell {
        Cell::Bar(Some(..POOR)) => Color::Red,
        Cell::Bar(Some(..REACHED)) => Color::Yellow,
        Cell::Bar(Some(_)) => Color::Green,
        _ => return Span::from(text),
    };
    Span::styled(text, if has_colours { Style::new().fg(colour) } else { Style::new() })
}

/// Returns the line of keys, behind the order of the rows if no title shows it.
fn footer(state: &State, hidden: Option<String>) -> String {
    if state.mode == Mode::Filter {
        return "write a part of the name; Enter keeps the filter, Esc drops it".to_owned();
    }
    let links = if state.seen.is_gateway || state.seen.links.len() < 2 { "" } else { "  ←→ link" };
    let order = hidden.map_or_else(String::new, |title| format!("sorted by {title}  "));
    format!("{order}q quit  Tab view  ↑↓ select{links}  s sort  / filter  p pause  ? help")
}

/// Keys and what they do.
const KEYS: [(&str, &str); 12] = [
    ("q, F10, Ctrl-C", "quit"),
    ("Ctrl-Z", "back to the shell until `fg` (not on Windows)"),
    ("Tab", "next view: flows, links, customers"),
    ("Up, Down, PgUp, PgDn, Home, End", "select a row"),
    ("Left, Right", "flows of another link of a run"),
    ("Enter", "flows of the selected link"),
    ("s, F6", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "show only rows whose name contains a text"),
    ("p, Space", "pause; a link that is chosen then is shown once"),
    ("?, h", "this help"),
    ("any other key", "back to the table"),
];

fn help(columns: usize, rows: usize) -> Vec<Line<'static>> {
    let about = [
        "",
        "RATE: last sample of a run, last second of a gateway",
        "MEAN: in the measured part of a run; SHARE: of the entitlement, or of the plan",
        "DROPS, LOST, MARKS: packets since the start; D., U.: down, up; -: not known",
        "A bar that ends in > is longer than its brackets.",
    ];
    let keys = KEYS.into_iter().map(|(keys, what)| format!("{keys:<31}  {what}"));
    let all = ["apportion top: keys".to_owned(), String::new()].into_iter().chain(keys);
    let all = all.chain(about.map(str::to_owned));
    all.take(rows).map(|text| Line::from(clip(&text, columns))).collect()
}

/// All views as plain text, in lines of at most this width.
pub fn text(seen: &Seen, columns: usize) -> String {
    let mut lines = heading(seen, columns);
    for view in View::of(seen) {
        let mut sheet = view.sheet(seen);
        let order = view.order(seen);
        sheet.sort(order);
        let (titles, rows) = sheet.lines(columns, Order { title: "", ..order }, 0..sheet.len());
        lines.extend([String::new(), clip(&view.title(seen), columns), titles]);
        lines.extend(rows.into_iter().map(|row| row.into_iter().map(|(_, text)| text).collect()));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests;
