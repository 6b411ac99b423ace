//! Suspension by the job control of a shell: the terminal is given back, and taken again when `fg` continues the program.

use std::io;
#[cfg(unix)]
use std::{
    io::stdout,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

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

    /// Asks for it, as a terminal does on Ctrl-Z: all processes of the job are to stop.
    pub fn ask() -> io::Result<()> {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::{Pid, getpgrp, getsid};
        // In the process group of a session's first process, as under `ssh -t`, no shell could continue it.
        if getsid(None)? == getpgrp() {
            return Ok(());
        }
        Ok(kill(Pid::from_raw(0), Signal::SIGTSTP)?)
    }

    /// Stops the program if it is to stop. Returns whether the screen has been cleared: it is to be drawn again.
    pub fn pass(&self, terminal: &mut DefaultTerminal) -> io::Result<bool> {
        let is_stopped = self.stop.swap(false, Ordering::Relaxed);
        if is_stopped {
            ratatui::try_restore()?;
            terminal.show_cursor()?;
            signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
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

    pub const fn ask() -> io::Result<()> {
        Ok(())
    }

    pub const fn pass(&self, _: &mut DefaultTerminal) -> io::Result<bool> {
        Ok(false)
    }
}
