//! The two interfaces of a gateway: their properties, and whether they fit.

use apportion_core::units::Bytes;
use apportion_linux::devices::Devices;
use apportion_linux::netlink::{Device, Netlink, NetlinkError, Offloads};
use apportion_scenario::gateway::GatewayConfig;

/// The properties of an interface before a gateway takes it.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    /// The index in the namespace.
    pub index: u32,
    /// The MTU: the longest IP packet.
    pub mtu: Bytes,
    /// Whether it is up and has a carrier.
    pub is_running: bool,
    /// Offloads that are on.
    pub offloads: Offloads,
}

/// Why an interface cannot be one of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No interface has this name, or its settings cannot be read.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// It is the loopback device.
    #[error("it is the loopback device; name an interface that leads to other hosts")]
    Loopback,
    /// Its frames have no Ethernet header.
    #[error("its frames are not Ethernet's, such as those of a tunnel; name an Ethernet interface")]
    NotEthernet,
    /// It is part of the device of this index.
    #[error(
        "it is part of device {0}, such as a bridge or bond, so frames would cross the gateway twice; remove \
         it from there (`ip link set DEVICE nomaster`), or name the bond itself"
    )]
    PartOf(u32),
}

impl Interface {
    /// Reads the properties of the interface called `name`.
    ///
    /// # Errors
    /// If there is no such interface, its settings cannot be read, or it cannot belong to a gateway.
    pub fn look(devices: &mut impl Devices, name: &str) -> Result<Self, InterfaceError> {
        let device = devices.device(name)?;
        fit(&device)?;
        Ok(Self {
            name: name.to_owned(),
            index: device.index,
            mtu: device.mtu,
            is_running: device.is_running,
            offloads: devices.offloads(name)?,
        })
    }

    /// Names of the offloads that a gateway turns off here.
    #[must_use]
    pub fn to_turn_off(&self) -> Vec<&'static str> {
        merging(&self.offloads)
    }
}

/// Names of the offloads that are on and merge received packets. Offloads of segmentation are for sent
/// packets: the gateway uses them itself.
pub(super) fn merging(offloads: &Offloads) -> Vec<&'static str> {
    let Offloads { gro, lro, .. } = *offloads;
    let all = [(gro, "GRO"), (lro, "LRO")];
    all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect()
}

/// Whether frames of the device cross only this gateway.
fn fit(device: &Device) -> Result<(), InterfaceError> {
    if device.is_loopback {
        return Err(InterfaceError::Loopback);
    }
    if !device.is_ethernet {
        return Err(InterfaceError::NotEthernet);
    }
    device.master.map_or(Ok(()), |master| Err(InterfaceError::PartOf(master)))
}

/// Both interfaces of `config`, inside and outside.
///
/// # Errors
/// All problems of both interfaces.
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

/// Warns about states of the interfaces that keep packets from passing.
pub fn warn(interfaces: &[Interface; 2]) {
    for interface in interfaces.iter().filter(|interface| !interface.is_running) {
        tracing::warn!(
            interface = interface.name,
            "the interface is down; packets are forwarded once it is up"
        );
    }
    let [inside, outside] = interfaces;
    if inside.mtu != outside.mtu {
        let (inside, outside) = (inside.mtu.get(), outside.mtu.get());
        tracing::warn!(inside, outside, "the MTUs differ; longer packets are dropped silently");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_neither_on_loopback_nor_on_part_of_a_bridge() {
        let mut netlink = Netlink::open().unwrap();
        let error = Interface::look(&mut netlink, "lo").unwrap_err();
        assert!(matches!(error, InterfaceError::Loopback), "{error}");
        let tunnel = Device { is_loopback: false, ..netlink.device("lo").unwrap() };
        assert!(matches!(fit(&tunnel), Err(InterfaceError::NotEthernet)));
        let device = Device { is_ethernet: true, ..tunnel };
        assert!(fit(&device).is_ok());
        let error = fit(&Device { master: Some(7), ..device }).unwrap_err().to_string();
        assert!(error.starts_with("it is part of device 7"), "{error}");
    }
}
