//! Puts VLAN tags that the kernel took out of frames back.

use std::ptr;

use super::segment::NEEDS_CHECKSUM;
use crate::pool::HEAD;

/// Bytes of a tag.
pub(super) const TAG: usize = 4;
/// Bytes of the frame before a tag.
pub(super) const ADDRESSES: usize = 12;
/// Offset in the header before a frame.
const CHECKSUM_START: usize = 6;

/// A tag beside a frame: its protocol and its control information.
pub(super) type Tag = (u16, u16);

/// The tag of a frame with this status (packet(7), `tp_status`).
pub(super) fn tag(status: u32, protocol: u16, control: u16) -> Option<Tag> {
    let says = |flag| status & flag != 0;
    says(libc::TP_STATUS_VLAN_VALID)
        .then(|| (if says(libc::TP_STATUS_VLAN_TPID_VALID) { protocol } else { 0x8100 }, control))
}

/// The tag in the auxiliary data of a message.
pub(super) fn tag_of_message(header: &libc::msghdr) -> Option<Tag> {
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`; the macros stay within.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (control.cmsg_level, control.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: a control message of this type holds a `tpacket_auxdata`, maybe not aligned.
    let auxiliary: libc::tpacket_auxdata = unsafe { ptr::read_unaligned(libc::CMSG_DATA(control).cast()) };
    tag(auxiliary.tp_status, auxiliary.tp_vlan_tpid, auxiliary.tp_vlan_tci)
}

/// Puts a tag that the kernel took out back into the frame of `length` bytes at [`HEAD`]. Returns where the
/// frame then begins.
pub(super) fn put_tag_back(tag: Option<Tag>, length: usize, bytes: &mut [u8]) -> usize {
    match tag.filter(|_| length >= ADDRESSES) {
        None => HEAD,
        Some(tag) => {
            put_tag(bytes, tag);
            HEAD - TAG
        }
    }
}

/// Puts a tag back after the addresses of the frame at [`HEAD`], which then begins [`TAG`] bytes before it.
fn put_tag(bytes: &mut [u8], (protocol, control): Tag) {
    let start = HEAD - TAG;
    bytes.copy_within(HEAD..HEAD + ADDRESSES, start);
    bytes[start + ADDRESSES..][..2].copy_from_slice(&protocol.to_be_bytes());
    bytes[start + ADDRESSES + 2..][..2].copy_from_slice(&control.to_be_bytes());
    // The start of an unfinished checksum moves with the frame. In the machine's byte order.
    if bytes[0] & NEEDS_CHECKSUM != 0 {
        let at = [bytes[CHECKSUM_START], bytes[CHECKSUM_START + 1]];
        let moved = u16::from_ne_bytes(at).saturating_add(TAG as u16);
        bytes[CHECKSUM_START..CHECKSUM_START + 2].copy_from_slice(&moved.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_back_between_addresses_and_type() {
        let mut bytes = [0_u8; 64];
        bytes[0] = 1;
        bytes[CHECKSUM_START..][..2].copy_from_slice(&34_u16.to_ne_bytes());
        for (at, byte) in bytes[HEAD..].iter_mut().enumerate() {
            *byte = at as u8;
        }
        put_tag(&mut bytes, (0x88a8, 0x0123));
        let frame = &bytes[HEAD - TAG..];
        assert_eq!(frame[..ADDRESSES], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(frame[ADDRESSES..ADDRESSES + 6], [0x88, 0xa8, 0x01, 0x23, 12, 13]);
        assert_eq!(bytes[CHECKSUM_START..][..2], 38_u16.to_ne_bytes());
    }

    #[test]
    fn a_tag_is_of_a_customer_unless_its_protocol_is_known() {
        let [valid, known] = [libc::TP_STATUS_VLAN_VALID, libc::TP_STATUS_VLAN_TPID_VALID];
        assert_eq!(tag(valid | known, 0x88a8, 7), Some((0x88a8, 7)));
        assert_eq!((tag(valid, 0x88a8, 7), tag(known, 0x88a8, 7)), (Some((0x8100, 7)), None));
    }
}
