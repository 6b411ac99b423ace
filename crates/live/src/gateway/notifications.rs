//! Overload notifications between the threads of a gateway: the thread that moves packets hands them over
//! without blocking, and the control thread writes them to [applications](crate::notifications).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use apportion_core::units::Time;

use crate::notifications::{Notice, Readers};

/// Maximum of notifications between the threads. Chosen: as many as a link keeps.
const MAX_NOTICES: usize = 1_024;

/// A queue of notifications between the threads.
#[derive(Debug)]
pub(crate) struct Notices {
    sender: SyncSender<Notice>,
    receiver: Mutex<Receiver<Notice>>,
    lost: AtomicU64,
    readers: AtomicU64,
}

/// Counts of readers and of lost notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationCounts {
    /// Notifications that found no room, for each reader that lost them.
    pub lost: u64,
    /// Readers that are connected.
    pub readers: u64,
}

impl Notices {
    /// An empty queue.
    pub fn new() -> Self {
        let (sender, receiver) = sync_channel(MAX_NOTICES);
        Self { sender, receiver: Mutex::new(receiver), lost: AtomicU64::new(0), readers: AtomicU64::new(0) }
    }

    /// Hands a notification over; it is lost if the queue is full.
    pub fn pass(&self, notice: Notice) {
        if self.sender.try_send(notice).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes all queued notifications to readers.
    pub fn serve(&self, now: Time, readers: &mut Readers) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Notice> = receiver.try_iter().take(MAX_NOTICES).collect();
        self.lost.fetch_add(readers.write(now, &all), Ordering::Relaxed);
        self.readers.store(readers.count() as u64, Ordering::Relaxed);
    }

    /// The current counts.
    pub fn counts(&self) -> NotificationCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        NotificationCounts { lost: read(&self.lost), readers: read(&self.readers) }
    }
}
