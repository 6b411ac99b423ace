//! The two interfaces of a gateway: checked, prepared, and restored at the end.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use apportion_core::units::Bytes;
use apportion_linux::netlink::{Device, Netlink, NetlinkError, Offloads};
use apportion_scenario::gateway::GatewayConfig;

/// What is known of an interface before a gateway takes it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the namespace.
    pub index: u32,
    /// The longest IP packet.
    pub mtu: Bytes,
    /// Whether it is up and has a carrier.
    pub is_running: bool,
    /// Offloads that are on.
    pub offloads: Offloads,
    /// Maximum of segments of a super-packet.
    pub segments: u32,
}

impl Interface {
    /// Looks at the interface called `name`.
    ///
    /// # Errors
    /// If there is no such interface, its settings cannot be read, or it cannot belong to a gateway.
    pub fn look(netlink: &mut Netlink, name: &str) -> Result<Self, String> {
        let device = netlink.device(name).map_err(|error| error.to_string())?;
        fit(&device)?;
        Ok(Self {
            name: name.to_owned(),
            index: device.index,
            mtu: device.mtu,
            is_running: device.is_running,
            offloads: netlink.offloads(name).map_err(|error| error.to_string())?,
            segments: device.gso_max_segs,
        })
    }

    /// Names of the offloads that a gateway turns off here.
    #[must_use]
    pub fn to_turn_off(&self) -> Vec<&'static str> {
        merging(&self.offloads)
    }
}

/// Names of the offloads that are on and merge packets.
fn merging(offloads: &Offloads) -> Vec<&'static str> {
    let Offloads { tso, gso, gro, lro, .. } = *offloads;
    let all = [(tso, "TSO"), (gso, "GSO"), (gro, "GRO"), (lro, "LRO")];
    all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect()
}

/// Whether frames of the device cross nothing but a gateway.
fn fit(device: &Device) -> Result<(), String> {
    if device.is_loopback {
        return Err("it is the loopback device; name an interface that leads to other hosts".to_owned());
    }
    let Some(master) = device.master else { return Ok(()) };
    Err(format!(
        "it is part of device {master}, such as a bridge or bond, so frames would cross the gateway twice; remove \
         it from there (`ip link set DEVICE nomaster`), or name the bond itself"
    ))
}

/// Both interfaces of `config`, inside and outside.
///
/// # Errors
/// All that is wrong with them.
pub fn look(config: &GatewayConfig) -> Result<[Interface; 2], Vec<String>> {
    let mut netlink = Netlink::open().map_err(|error| vec![error.to_string()])?;
    let mut look = |key: &str, name: &str| {
        Interface::look(&mut netlink, name).map_err(|error| format!("{key} = \"{name}\": {error}"))
    };
    match (look("inside", &config.inside), look("outside", &config.outside)) {
        (Ok(inside), Ok(outside)) => Ok([inside, outside]),
        (inside, outside) => Err([inside.err(), outside.err()].into_iter().flatten().collect()),
    }
}

/// Takes the interfaces for this gateway until what is returned is dropped. Two gateways on one interface would
/// send each frame twice.
///
/// Each is a name of an abstract socket, which belongs to the network namespace and ends with the process
/// (unix(7)). Any process there can take that name first and so keep a gateway from starting.
///
/// # Errors
/// What is taken already, one problem each.
pub(crate) fn claim(interfaces: &[Interface]) -> Result<Vec<UnixDatagram>, Vec<String>> {
    let claim = |Interface { name, index, .. }: &Interface| {
        let address = SocketAddr::from_abstract_name(format!("apportion-gateway-{index}"));
        address.and_then(|address| UnixDatagram::bind_addr(&address)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("interface `{name}`: a gateway is already running on it; stop that one, or name another interface")
            }
            _ => format!("interface `{name}`: cannot check whether another gateway uses it: {error}"),
        })
    };
    let (claimed, taken): (Vec<_>, Vec<_>) = interfaces.iter().map(claim).partition(Result::is_ok);
    if taken.is_empty() {
        Ok(claimed.into_iter().flatten().collect())
    } else {
        Err(taken.into_iter().filter_map(Result::err).collect())
    }
}

/// Interfaces whose offloads are off, and are turned on again when this is dropped.
#[derive(Debug)]
pub(crate) struct Prepared(Vec<Interface>);

impl Prepared {
    /// Turns off offloads that merge packets.
    ///
    /// # Errors
    /// If the driver does not let go of LRO, which does not say what it merged, or for want of CAP_NET_ADMIN.
    pub fn new(interfaces: &[Interface]) -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open()?;
        let mut prepared = Self(Vec::new());
        for interface in interfaces {
            // Noted first, so that half of it is given back as well.
            prepared.0.push(interface.clone());
            let stay = merging(&netlink.turn_off_segmentation(&interface.name)?);
            if !stay.is_empty() {
                tracing::warn!(
                    interface = interface.name,
                    stay = stay.join(", "),
                    "offloads cannot be turned off; super-packets are cut into packets, which costs CPU time"
                );
            }
            let off: Vec<_> = interface.to_turn_off().into_iter().filter(|it| !stay.contains(it)).collect();
            if !off.is_empty() {
                tracing::info!(
                    interface = interface.name,
                    off = off.join(", "),
                    "offloads are turned off while the gateway runs"
                );
            }
        }
        Ok(prepared)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for Interface { name, offloads, segments, .. } in &self.0 {
            let restored = Netlink::open().and_then(|mut netlink| netlink.restore(name, offloads, *segments));
            match restored {
                Ok(()) => tracing::info!(interface = name, "offloads are restored"),
                Err(error) => {
                    tracing::warn!(interface = name, %error, "offloads cannot be restored and stay off");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_neither_on_loopback_nor_on_part_of_a_bridge() {
        let mut netlink = Netlink::open().unwrap();
        let error = Interface::look(&mut netlink, "lo").unwrap_err();
        assert!(error.contains("loopback"), "{error}");
        let device = Device { is_loopback: false, ..netlink.device("lo").unwrap() };
        assert_eq!(fit(&device), Ok(()));
        let error = fit(&Device { master: Some(7), ..device }).unwrap_err();
        assert!(error.starts_with("it is part of device 7"), "{error}");
    }

    #[test]
    fn an_interface_is_of_one_gateway() {
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        // Numbers that no interface has.
        let interface = |index| Interface {
            name: format!("x{index}"),
            index,
            mtu: Bytes::ZERO,
            is_running: false,
            offloads,
            segments: 0,
        };
        let [a, b, c] = [u32::MAX, u32::MAX - 1, u32::MAX - 2].map(interface);
        let claimed = claim(&[a.clone(), b.clone()]).unwrap();
        let errors = claim(&[c.clone(), b.clone()]).unwrap_err();
        assert!(
            errors.len() == 1 && errors[0].contains("`x4294967294`: a gateway is already running"),
            "{errors:?}"
        );
        // What was refused holds nothing, and what ended neither.
        drop(claim(std::slice::from_ref(&c)).unwrap());
        drop(claimed);
        claim(&[c, b, a]).unwrap();
    }
}
