//! Suspension by the job control of a shell: the terminal is given back, and taken again when `fg` continues the program.

use std::io;
#[cfg(unix)]
use std::{
    io::stdout,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

#[cfg(unix)]
use nix::sys::signal::{Signal, kill};
#[cfg(unix)]
use nix::unistd::{Pid, getpgrp, getsid};
use ratatui::DefaultTerminal;
#[cfg(unix)]
use ratatui::crossterm::execute;
#[cfg(unix)]
use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
#[cfg(unix)]
use signal_hook::consts::{SIGCONT, SIGTSTP};

/// Signals of job control that have come.
#[cfg(unix)]
pub struct Suspension {
    stop: Arc<AtomicBool>,
    /// Also after SIGSTOP, which cannot be caught: the shell has changed the terminal meanwhile.
    resumed: Arc<AtomicBool>,
}

#[cfg(unix)]
impl Suspension {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let listen = |signal| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag)).map(|_| flag)
        };
        Ok(Self { stop: listen(SIGTSTP)?, resumed: listen(SIGCONT)? })
    }

    /// Stops the program if a signal or a key asks for it. Returns whether the screen has been cleared: it is to be drawn again.
    pub fn pass(&self, terminal: &mut DefaultTerminal, is_key: bool) -> io::Result<bool> {
        // In the process group of a session's first process, as under `ssh -t`, no shell could continue it.
        let is_key = is_key && getsid(None)? != getpgrp();
        let is_stopped = self.stop.swap(false, Ordering::Relaxed) || is_key;
        if is_stopped {
            ratatui::try_restore()?;
            terminal.show_cursor()?;
            if is_key {
                // All processes of the job stop, as on Ctrl-Z without raw mode.
                kill(Pid::from_raw(0), Signal::SIGTSTP)?;
            }
            signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
            self.stop.store(false, Ordering::Relaxed);
        }
        if !self.resumed.swap(false, Ordering::Relaxed) && !is_stopped {
            return Ok(false);
        }
        // Raw mode that the shell has ended unseen can be set only after it is ended here too.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        super::screen::clear(terminal)?;
        Ok(true)
    }
}

/// Systems without job control.
#[cfg(not(unix))]
pub struct Suspension;

#[cfg(not(unix))]
impl Suspension {
    pub const fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    pub const fn pass(&self, _: &mut DefaultTerminal, _: bool) -> io::Result<bool> {
        Ok(false)
    }
}
