//! The terminal: draws the state, reads keys and asks the page, each of both in a thread of its own.

use std::io::{self, ErrorKind, IsTerminal as _, stdout};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, Frame};

use super::address::Address;
use super::client;
use super::draw;
use super::model::Seen;
use super::state::{State, Wish};
use super::suspension::Suspension;
use crate::interrupt::Interrupt;
use crate::progress::now;
use crate::status::Status;

/// The longest wait for a key before answers and the clock are looked at. Chosen: no delay is seen.
const ROUND: Duration = Duration::from_millis(50);

/// Restores the terminal when it is dropped; the panic hook of `ratatui` does so before the message.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        // A terminal that has been closed cannot be restored, and no message reaches it.
        drop(ratatui::try_restore());
        drop(execute!(stdout(), Show));
    }
}

/// Shows the page until a key or a signal ends it.
///
/// # Errors
/// The terminal cannot be used.
pub fn show(address: &Address, first: Seen, interval: Option<Duration>) -> anyhow::Result<Status> {
    let interrupt = Interrupt::listen()?;
    let (ask, answers) = asker(address.clone())?;
    let state = State::new(address.url(), first, Duration::ZERO);
    let _restored = Restored;
    let terminal = ratatui::try_init().context("the terminal cannot be used; --once needs none")?;
    // When it is dropped, it prints why the cursor cannot be shown, which panics if the terminal has been closed.
    let mut terminal = ManuallyDrop::new(terminal);
    // A terminal without another screen still shows what was on it.
    clear(&mut terminal)?;
    let suspension = Suspension::listen().context("cannot listen for signals")?;
    let events = events()?;
    let mut screen =
        Screen { state, interval, events, suspension, ask, answers, is_asking: false, next: Duration::ZERO };
    screen.run(&mut terminal, &interrupt).context("the terminal failed")
}

/// An answer of the page about the link of this index, or why there is none.
type Answer = (usize, Result<Seen, String>);

/// A thread that asks the page for each index of a link it is sent, until that end is closed.
fn asker(address: Address) -> anyhow::Result<(SyncSender<usize>, Receiver<Answer>)> {
    let (ask, asked) = sync_channel(1);
    let (tell, answers) = channel();
    let work = move || {
        while let Ok(link) = asked.recv() {
            if tell.send((link, client::ask(&address, link))).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("asker".to_owned()).spawn(work).context("cannot start a thread")?;
    Ok((ask, answers))
}

/// A thread that reads keys and changes of size. crossterm reads a terminal that has been closed again and again, and does not return: this
/// thread then ends with the program.
fn events() -> anyhow::Result<Receiver<io::Result<Event>>> {
    let (tell, events) = channel();
    let work = move || while tell.send(event::read()).is_ok() {};
    thread::Builder::new().name("keys".to_owned()).spawn(work).context("cannot start a thread")?;
    Ok(events)
}

struct Screen {
    state: State,
    interval: Option<Duration>,
    events: Receiver<io::Result<Event>>,
    suspension: Suspension,
    ask: SyncSender<usize>,
    answers: Receiver<Answer>,
    is_asking: bool,
    /// Time of the next request.
    next: Duration,
}

impl Screen {
    fn run(&mut self, terminal: &mut DefaultTerminal, interrupt: &Interrupt) -> io::Result<Status> {
        let begin = now();
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        let mut drawn = None;
        let mut is_new = true;
        loop {
            let now = begin.elapsed();
            is_new |= self.suspension.pass(terminal, false)?;
            is_new |= self.hear(now);
            self.ask(now);
            // What is shown also depends on the time without an answer.
            let silence = self.state.silence(now).map(|(seconds, _)| seconds);
            if is_new || drawn != Some(silence) {
                terminal.draw(|frame| paint(frame, &mut self.state, now, has_colours))?;
                (is_new, drawn) = (false, Some(silence));
            }
            while let Some(event) = self.event(if is_new { Duration::ZERO } else { ROUND })? {
                is_new = true;
                let Event::Key(key) = event else { continue };
                match self.state.key(key) {
                    Wish::Draw => (),
                    Wish::Ask => self.next = now,
                    Wish::Quit => return Ok(Status::SUCCESS),
                    Wish::Suspend => is_new |= self.suspension.pass(terminal, true)?,
                }
            }
            if interrupt.cancel.is_cancelled() {
                return Ok(Status::FAILURE);
            }
        }
    }

    /// A key or a new size, if it comes within this time.
    fn event(&self, wait: Duration) -> io::Result<Option<Event>> {
        match self.events.recv_timeout(wait) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) if stdout().is_terminal() => Ok(None),
            Err(_) => Err(io::Error::new(ErrorKind::UnexpectedEof, "it has been closed")),
        }
    }

    /// Takes the answer, if it is there.
    fn hear(&mut self, now: Duration) -> bool {
        let Ok((link, answer)) = self.answers.try_recv() else { return false };
        self.is_asking = false;
        self.state.hear(link, answer, now);
        true
    }

    /// Asks again when it is time to.
    fn ask(&mut self, now: Duration) {
        if self.is_asking || !self.state.is_open() || now < self.next {
            return;
        }
        self.is_asking = self.ask.try_send(self.state.link).is_ok();
        let usual = || Duration::from_secs_f64(self.state.seen.interval);
        self.next = now + self.interval.unwrap_or_else(usual);
    }
}

/// Clears the screen, which is then drawn in full. `Terminal::clear` asks the terminal for its cursor, and not each terminal answers.
pub fn clear(terminal: &mut DefaultTerminal) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(size.into())
}

fn paint(frame: &mut Frame<'_>, state: &mut State, now: Duration, has_colours: bool) {
    let area = frame.area();
    let lines = draw::lines(state, now, area.width.into(), area.height.into(), has_colours);
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y: row, height: 1, ..area });
    }
}
