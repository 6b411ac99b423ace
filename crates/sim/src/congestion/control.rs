//! The congestion control of a connection, of any kind.

use std::ops::{Deref, DerefMut};

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Connection, Response, Window};
use apportion_scenario::tcp::{Algorithm, TcpParams};

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::ledbat::Ledbat;
use super::path_model::ByModel;
use super::prague::Prague;
use super::reno::Reno;
use super::vegas::Vegas;
use super::window::initial_window;

/// The hook of a congestion signal.
pub type Sign = fn(&mut (dyn CongestionControl + 'static), &mut Window, &CongestionEvent) -> Response;

/// A congestion control in the size of a pointer. Reno and CUBIC, which most connections have, are called
/// without a virtual call for each ACK; by reference all are a [`CongestionControl`].
#[derive(Debug)]
pub enum Control {
    /// The window of Tahoe, Reno, NewReno and SACK, which differ in loss recovery.
    Reno(Reno),
    /// A control with state.
    Boxed(Box<Boxed>),
}

/// A control on the heap.
#[derive(Debug)]
pub enum Boxed {
    /// CUBIC.
    Cubic(Cubic),
    /// Any other.
    Other(Box<dyn CongestionControl>),
}

/// A connection has 512 bytes where pointers have 8.
const _: () = assert!(size_of::<Control>() == size_of::<usize>());

impl Control {
    /// The control of a new connection.
    #[must_use]
    pub fn new(params: &TcpParams) -> Self {
        let (initial_window, segment) = (initial_window(params), params.segment);
        let wire = segment + params.header;
        let other: Box<dyn CongestionControl> = match &params.algorithm {
            Algorithm::Tahoe | Algorithm::Reno | Algorithm::NewReno | Algorithm::Sack => {
                return Self::Reno(Reno);
            }
            Algorithm::Cubic => return Self::Boxed(Box::new(Boxed::Cubic(Cubic::new(params.cubic)))),
            Algorithm::Bbr => Box::new(ByModel::new(Bbr::new(initial_window, wire))),
            Algorithm::Bbr3 => Box::new(ByModel::new(Bbr3::new(initial_window, wire))),
            Algorithm::Dctcp => Box::<Dctcp>::default(),
            Algorithm::Vegas => Box::<Vegas>::default(),
            Algorithm::Ledbat => Box::<Ledbat>::default(),
            Algorithm::Prague => Box::<Prague>::default(),
            Algorithm::Registered(registered) => {
                registered.build(&Connection { initial_window, segment, wire })
            }
        };
        Self::Boxed(Box::new(Boxed::Other(other)))
    }

    /// Whether it may read all of an [`Ack`], and change the window by itself. Reno and CUBIC do neither, so
    /// that less is computed for them.
    #[must_use]
    pub fn reads_whole_acks(&self) -> bool {
        let is_other = matches!(self, Self::Boxed(boxed) if matches!(**boxed, Boxed::Other(_)));
        is_other || self.observes_segments()
    }

    /// Acts as [`CongestionControl::on_ack`] does, for a control that does not [read
    /// all](Self::reads_whole_acks) of it: unused fields are not computed. Other controls must not be called
    /// this way, which a debug build asserts.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::Reno(reno) => reno.on_ack(window, ack),
            Self::Boxed(boxed) => match &mut **boxed {
                Boxed::Cubic(cubic) => cubic.on_ack(window, ack),
                Boxed::Other(other) => debug_assert!(false, "{other:?} reads whole ACKs"),
            },
        }
    }

    /// Acts as [`CongestionControl::on_ack`] does.
    #[inline(always)]
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::Reno(reno) => reno.on_ack(window, ack),
            Self::Boxed(boxed) => match &mut **boxed {
                Boxed::Cubic(cubic) => cubic.on_ack(window, ack),
                Boxed::Other(other) => other.on_ack(window, ack),
            },
        }
    }
}

impl Deref for Control {
    type Target = dyn CongestionControl;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Boxed(boxed) => match &**boxed {
                Boxed::Cubic(cubic) => cubic,
                Boxed::Other(other) => &**other,
            },
        }
    }
}

impl DerefMut for Control {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Boxed(boxed) => match &mut **boxed {
                Boxed::Cubic(cubic) => cubic,
                Boxed::Other(other) => &mut **other,
            },
        }
    }
}
