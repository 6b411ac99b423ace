//! What the user and the page did so far: answers and keys in, the state of the screen out.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::Seen;
use super::sheet::{Order, Sheet};
use super::views::View;

/// Maximum of characters of a filter. Chosen: a line shows them.
const MAX_FILTER: usize = 40;

/// What keys do at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Table,
    /// Keys write the filter.
    Filter,
    Help,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Draw,
    /// An answer about another link.
    Ask,
    Quit,
    /// Back to the shell until it continues the program.
    Suspend,
}

/// The rows on the screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scroll {
    pub selected: usize,
    /// The first row on the screen.
    pub first: usize,
    /// Rows of the table, and how many of them fit.
    rows: usize,
    page: usize,
}

impl Scroll {
    /// The selected row is on a screen of this size.
    pub fn fitted(self, rows: usize, page: usize) -> Self {
        let page = page.max(1);
        let selected = self.selected.min(rows.saturating_sub(1));
        let lowest = (selected + 1).saturating_sub(page);
        let first = self.first.clamp(lowest, selected.max(lowest)).min(rows.saturating_sub(page));
        Self { selected, first, rows, page }
    }

    /// Selects another row, if the key stands for one.
    fn key(&mut self, code: KeyCode) {
        let last = self.rows.saturating_sub(1);
        self.selected = match code {
            KeyCode::Up | KeyCode::Char('k') => self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected.saturating_sub(self.page),
            KeyCode::PageDown => (self.selected + self.page).min(last),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return,
        };
    }
}

/// The state of the screen.
#[derive(Debug)]
pub struct State {
    pub url: String,
    pub seen: Seen,
    /// Time of the last answer.
    heard: Duration,
    /// Why the last request had no answer.
    failure: Option<String>,
    pub view: View,
    /// The orders of the views that the user chose.
    orders: [Option<Order>; 3],
    pub scroll: Scroll,
    pub filter: String,
    pub mode: Mode,
    pub is_paused: bool,
    /// The index of the link whose flows are shown.
    pub link: usize,
    /// Whether this link was chosen and no answer about it has come.
    is_awaited: bool,
    /// Columns of the screen: all, until it is drawn.
    pub columns: usize,
}

impl State {
    /// The screen after the first answer, at `now`.
    pub fn new(url: String, seen: Seen, now: Duration) -> Self {
        let view = if seen.customers.is_empty() { View::Flows } else { View::Customers };
        Self {
            url,
            seen,
            heard: now,
            failure: None,
            view,
            orders: [None; 3],
            scroll: Scroll::default(),
            filter: String::new(),
            mode: Mode::Table,
            is_paused: false,
            link: 0,
            is_awaited: false,
            columns: usize::MAX,
        }
    }

    /// Whether an answer would be shown: a pause lets the first one about a chosen link pass.
    pub const fn is_open(&self) -> bool {
        !self.is_paused || self.is_awaited
    }

    /// Takes an answer about this link, or why there is none.
    pub fn hear(&mut self, link: usize, answer: Result<Seen, String>, now: Duration) {
        match answer {
            Ok(mut seen) => {
                self.failure = None;
                self.heard = now;
                if !self.is_paused || (self.is_awaited && link == self.link) {
                    self.is_awaited &= link != self.link;
                    seen.fill_rates(&self.seen);
                    self.seen = seen;
                    // Another run may have fewer links, or a gateway may have lost its customers.
                    self.link = self.link.min(self.seen.links.len().saturating_sub(1));
                    if !View::of(&self.seen).contains(&self.view) {
                        self.show(View::Flows);
                    }
                }
            }
            Err(why) => self.failure = Some(why),
        }
    }

    /// For how long there has been no answer, in seconds, and why.
    pub fn silence(&self, now: Duration) -> Option<(u64, &str)> {
        let why = self.failure.as_deref()?;
        Some((now.saturating_sub(self.heard).as_secs(), why))
    }

    pub fn order(&self) -> Order {
        self.orders[self.view as usize].unwrap_or_else(|| self.view.order(&self.seen))
    }

    /// The table in its order, without rows that the filter leaves out.
    pub fn sheet(&self) -> Sheet<'_> {
        let mut sheet = self.view.sheet(&self.seen);
        if !self.filter.is_empty() {
            sheet.filter(&self.filter);
        }
        sheet.sort(self.order());
        sheet
    }

    /// Does what a key stands for.
    pub fn key(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Draw;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Quit,
                KeyCode::Char('z') => Wish::Suspend,
                _ => Wish::Draw,
            };
        }
        match self.mode {
            Mode::Table => return self.key_of_table(key.code),
            Mode::Filter => self.key_of_filter(key.code),
            Mode::Help if matches!(key.code, KeyCode::Char('q') | KeyCode::F(10)) => return Wish::Quit,
            Mode::Help => self.mode = Mode::Table,
        }
        Wish::Draw
    }

    fn key_of_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Table;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if self.filter.chars().count() < MAX_FILTER && !c.is_control() => {
                self.filter.push(c);
            }
            _ => (),
        }
        self.scroll = Scroll::default();
    }

    fn key_of_table(&mut self, code: KeyCode) -> Wish {
        match code {
            KeyCode::Char('q') | KeyCode::F(10) => return Wish::Quit,
            KeyCode::Char('s') | KeyCode::F(6) => self.sort_by_next(),
            KeyCode::Char('r') => {
                let order = self.order();
                self.orders[self.view as usize] = Some(Order { is_reversed: !order.is_reversed, ..order });
            }
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('p' | ' ') => {
                self.is_paused = !self.is_paused;
                return Wish::Ask;
            }
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(-1),
            KeyCode::Left => return self.choose(self.link.checked_sub(1)),
            KeyCode::Right => return self.choose(Some(self.link + 1)),
            KeyCode::Enter if self.view == View::Links => return self.choose_selected(),
            code => self.scroll.key(code),
        }
        Wish::Draw
    }

    fn show(&mut self, view: View) {
        (self.view, self.scroll) = (view, Scroll::default());
        self.filter.clear();
    }

    /// Shows the next view, or the one before.
    fn turn(&mut self, by: isize) {
        let views = View::of(&self.seen);
        let at = views.iter().position(|view| *view == self.view).unwrap_or(0);
        let next = (at.cast_signed() + by).rem_euclid(views.len().cast_signed());
        self.show(views[next.cast_unsigned()]);
    }

    fn sort_by_next(&mut self) {
        let titles = self.sheet().titles(self.columns);
        let at = titles.iter().position(|title| *title == self.order().title);
        let next = at.map_or(0, |at| at + 1) % titles.len().max(1);
        self.orders[self.view as usize] = titles.get(next).map(|title| Order { title, is_reversed: false });
    }

    /// Shows the flows of another link of a run.
    fn choose(&mut self, link: Option<usize>) -> Wish {
        let Some(link) = link.filter(|link| *link < self.seen.links.len() && !self.seen.is_gateway) else {
            return Wish::Draw;
        };
        (self.link, self.is_awaited) = (link, true);
        Wish::Ask
    }

    /// Shows the flows of the selected link.
    fn choose_selected(&mut self) -> Wish {
        let name = self.sheet().name(self.scroll.selected).map(str::to_owned);
        let link = self.seen.links.iter().position(|link| Some(&*link.name) == name.as_deref());
        let wish = self.choose(link);
        if wish == Wish::Ask {
            self.show(View::Flows);
        }
        wish
    }
}

#[cfg(test)]
mod tests;
