//! A page in the browser that shows a run while it goes on.

mod board;
mod course;
mod follower;
mod series;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use apportion_live::watch::WatchError;
use apportion_live::watch::{Listener, Serving};
use apportion_scenario::Point;

use self::board::Board;
pub(crate) use self::course::Stand;
pub(crate) use self::follower::Follower;

/// A page in the browser that shows [runs](crate::Run::watch) while they go on, and the last one as long as
/// this value lives: for each watched link its rate and capacity, the shares and entitlements of flows, sojourn
/// times, and drops. Linux only.
///
/// The page is available only on loopback addresses, has no password, and changes nothing. Memory: at most 40
/// MB for the last 16 replications, plus 24 bytes for each of their flows and 8 for each link that a flow
/// crosses; also the entitlements of those that run, which reports need as well.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "1s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
/// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// # "#)?;
/// let mut watch = apportion::Watch::bind("127.0.0.1:0".parse()?)?;
/// watch.serve()?;
/// println!("open {}", watch.url());
/// let results = apportion::Run::new(&scenario).watch(&watch).simulate()?;
/// # assert_eq!(results.flows().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    board: Arc<Mutex<Board>>,
    address: SocketAddr,
    state: State,
}

#[derive(Debug)]
enum State {
    Bound(Listener),
    Serving { _thread: Serving },
    Failed,
}

impl Watch {
    /// The default address of the command `apportion`: `127.0.0.1:9618`.
    pub const ADDRESS: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9618);

    /// Binds the page to an address, which must be a loopback address; port 0 selects a free port. Browsers
    /// wait until the page is [served](Self::serve).
    ///
    /// # Errors
    /// If other machines could reach the address, or it is not available.
    pub fn bind(address: SocketAddr) -> Result<Self, WatchError> {
        let listener = Listener::bind(address)?;
        let address = listener.address();
        Ok(Self { board: Arc::default(), address, state: State::Bound(listener) })
    }

    /// Serves the page in a separate thread until the value is dropped. Before a run in the lab, call
    /// [`enter`](crate::lab::enter) between `bind` and this function.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn serve(&mut self) -> Result<(), WatchError> {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Bound(listener) => {
                let board = Arc::clone(&self.board);
                let stats = move |query: &str| format!("{}\n", lock(&board).json(query));
                State::Serving { _thread: listener.serve(stats)? }
            }
            state => state,
        };
        Ok(())
    }

    /// Returns the URL of the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn begin(&self, title: &str, replications: usize) {
        lock(&self.board).begin(title, replications);
    }

    pub(crate) fn step(&self) {
        lock(&self.board).step();
    }

    pub(crate) fn end(&self, is_complete: bool) {
        lock(&self.board).end(is_complete);
    }

    pub(crate) fn follower<'a>(&self, point: &'a Point, seed: u64) -> Follower<'a> {
        Follower::new(Arc::clone(&self.board), point, seed)
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
