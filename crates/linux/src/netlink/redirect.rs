//! Makes the kernel forward every frame that one device receives to another one, which sends it.
//!
//! Source: tc(8), tc-u32(8), tc-mirred(8), linux/pkt_cls.h. A filter that matches everything is added at the
//! ingress of the device, with a preference of its own; other filters there stay, and those with a smaller
//! preference come first.
//!
//! The device is promiscuous meanwhile: otherwise a network card drops frames to the addresses of other
//! hosts, which are all that cross. The preference of the filter records whether the device was promiscuous
//! before, so that the end of the redirection can restore it.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption, TcActionType,
    TcAttribute, TcFilterU32Option, TcHandle, TcHeader, TcMessage, TcMirror, TcMirrorActionType, TcOption,
    TcU32Key, TcU32Selector, TcU32SelectorFlags,
};
use nix::errno::Errno;

use super::{Netlink, NetlinkError};

/// The preference of the filter, and that for a device which was promiscuous before. Chosen: unlike those
/// that people and tc choose.
const PREFERENCE: u32 = 0x4170;
const PREFERENCE_PROMISCUOUS: u32 = 0x4171;
/// The first table of a u32 classifier, which exists as long as the classifier (`TC_U32_ROOT` of
/// linux/pkt_cls.h).
const ROOT_TABLE: TcHandle = TcHandle { major: 0xfff0, minor: 0 };
/// `ETH_P_ALL` of linux/if_ether.h, in network byte order.
const ALL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;

impl Netlink {
    /// Redirects the frames that the device `from` receives to the device `to`. Repeating the call changes
    /// nothing.
    ///
    /// # Errors
    /// The kernel's error, `ENOENT` if it was built without cls_u32 or act_mirred.
    pub fn redirect(&mut self, from: u32, to: u32) -> Result<(), NetlinkError> {
        let doing = format!("redirect frames of device {from} to device {to}");
        self.stop_redirecting(from)?;
        let mut classifier = message(from, TcHandle { major: u16::MAX, minor: 0 }, TcHandle::CLSACT);
        classifier.attributes.push(TcAttribute::Kind("clsact".to_owned()));
        match self.create(RouteNetlinkMessage::NewQueueDiscipline(classifier), format_args!("{doing}")) {
            // There is one already, with or without filters of others.
            Err(NetlinkError::Refused { errno: Errno::EEXIST, .. }) => (),
            made => made?,
        }
        let was_promiscuous = self.device_at(from)?.is_promiscuous;
        let preference = if was_promiscuous { PREFERENCE_PROMISCUOUS } else { PREFERENCE };
        let mut filter = filter(from, preference);
        filter.attributes.extend([
            TcAttribute::Kind("u32".to_owned()),
            TcAttribute::Options(vec![
                TcOption::U32(TcFilterU32Option::Selector(everything())),
                TcOption::U32(TcFilterU32Option::Action(vec![sends_by(to)])),
            ]),
        ]);
        self.create(RouteNetlinkMessage::NewTrafficFilter(filter), format_args!("{doing}"))?;
        // After the filter, whose preference tells how to end it.
        self.set_promiscuous(from, true)
    }

    /// Whether the device `from` has the filter of [`redirect`](Self::redirect).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn is_redirecting(&mut self, from: u32) -> Result<bool, NetlinkError> {
        for preference in [PREFERENCE, PREFERENCE_PROMISCUOUS] {
            let mut filter = filter(from, preference);
            filter.header.handle = ROOT_TABLE;
            let doing = format_args!("look at the redirection of frames of device {from}");
            if self.socket.exists(RouteNetlinkMessage::GetTrafficFilter(filter), doing)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends the redirection. Returns whether frames were redirected.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn stop_redirecting(&mut self, from: u32) -> Result<bool, NetlinkError> {
        let mut found = false;
        for preference in [PREFERENCE, PREFERENCE_PROMISCUOUS] {
            let request = RouteNetlinkMessage::DelTrafficFilter(filter(from, preference));
            let doing = format_args!("stop redirecting frames of device {from}");
            // Without such a filter, or its parent, there is nothing to end.
            if !self.socket.exists(request, doing)? {
                continue;
            }
            found = true;
            if preference == PREFERENCE {
                self.set_promiscuous(from, false)?;
            }
        }
        Ok(found)
    }
}

fn message(device: u32, handle: TcHandle, parent: TcHandle) -> TcMessage {
    let header = TcHeader { index: device.cast_signed(), handle, parent, ..TcHeader::default() };
    TcMessage::from_parts(header, Vec::new())
}

fn filter(device: u32, preference: u32) -> TcMessage {
    let at_ingress = TcHandle { major: u16::MAX, minor: TcHandle::MIN_INGRESS };
    let mut filter = message(device, TcHandle::UNSPEC, at_ingress);
    filter.header.info = preference << 16 | ALL;
    filter
}

/// A selector with one key that matches everything.
fn everything() -> TcU32Selector {
    let mut selector = TcU32Selector::default();
    selector.flags = TcU32SelectorFlags::Terminal;
    selector.keys = vec![TcU32Key::default()];
    selector.nkeys = 1;
    selector
}

fn sends_by(device: u32) -> TcAction {
    let mut mirror = TcMirror::default();
    mirror.eaction = TcMirrorActionType::EgressRedir;
    mirror.generic.action = TcActionType::Stolen;
    mirror.ifindex = device;
    let mut action = TcAction::default();
    action.attributes = vec![
        TcActionAttribute::Kind(TcActionMirror::KIND.to_owned()),
        TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(mirror))]),
    ];
    action
}
