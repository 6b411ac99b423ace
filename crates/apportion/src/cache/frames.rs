//! Files of the cache: LZ4 frames of CBOR items.

use std::io::{self, BufRead, BufReader, Read, Write};

use lz4_flex::frame::{FrameDecoder, FrameEncoder, FrameInfo};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The size of a frame header that contains the content size: magic number, flags, block size, content size,
/// checksum.
const HEADER: usize = 4 + 1 + 1 + 8 + 1;
/// The offset of the content size in the header: 8 bytes, little-endian.
const CONTENT_SIZE: usize = 6;
/// The approximate uncompressed size of joined frames. Chosen: longer ones are hardly smaller.
const JOINED: usize = 1 << 20;
/// The maximum uncompressed size of a frame that is read. Chosen: more than ten thousand flows with series of
/// ten thousand samples.
const MAX_FRAME: u64 = 1 << 30;

/// Encodes entries as a frame.
pub(crate) fn frame<T: Serialize>(entries: &[T]) -> io::Result<Vec<u8>> {
    let mut items = Vec::new();
    for entry in entries {
        ciborium::into_writer(entry, &mut items).map_err(io::Error::other)?;
    }
    compressed(&items)
}

fn compressed(items: &[u8]) -> io::Result<Vec<u8>> {
    let info = FrameInfo::new().content_size(Some(items.len() as u64)).block_checksums(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(items)?;
    Ok(encoder.finish()?)
}

/// Calls `each` with the contents of the frames of a file, up to the first one that is damaged or truncated.
pub(crate) fn frames(file: impl Read, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut reader = BufReader::new(file);
    let mut content = Vec::new();
    while !reader.fill_buf()?.is_empty() {
        content.clear();
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        // The content ends with the frame, or with a truncated file: the content size tells the two apart.
        FrameDecoder::new(header.chain(&mut reader)).take(MAX_FRAME).read_to_end(&mut content)?;
        let size = u64::from_le_bytes(std::array::from_fn(|at| header[CONTENT_SIZE + at]));
        match content.len() as u64 {
            MAX_FRAME => return Err(invalid("a frame is too long")),
            read if read != size => return Err(invalid("a frame is cut short")),
            _ => each(&content)?,
        }
    }
    Ok(())
}

/// Calls `each` with the entries of a file, up to the first unreadable one.
pub(crate) fn entries<T: DeserializeOwned>(file: impl Read, each: &mut impl FnMut(T)) -> io::Result<()> {
    frames(file, |content| items(content, each))
}

/// Calls `each` with the items of a frame.
pub(crate) fn items<T: DeserializeOwned>(mut content: &[u8], each: &mut impl FnMut(T)) -> io::Result<()> {
    while !content.is_empty() {
        let invalid =
            |error: ciborium::de::Error<_>| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        each(ciborium::from_reader(&mut content).map_err(invalid)?);
    }
    Ok(())
}

/// Writes the contents of a file in fewer frames.
pub(crate) fn join(file: impl Read, out: &mut impl Write) -> io::Result<()> {
    let mut joined = Vec::new();
    frames(file, |content| {
        joined.extend_from_slice(content);
        if joined.len() < JOINED {
            return Ok(());
        }
        out.write_all(&compressed(&std::mem::take(&mut joined))?)
    })?;
    if joined.is_empty() { Ok(()) } else { out.write_all(&compressed(&joined)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &[u8]) -> (Vec<u64>, bool) {
        let mut all = Vec::new();
        let is_whole = entries(file, &mut |entry| all.push(entry)).is_ok();
        (all, is_whole)
    }

    #[test]
    fn what_is_cut_or_damaged_ends_a_file() {
        let file: Vec<u8> = (0..3_u64).flat_map(|entry| frame(&[entry]).unwrap()).collect();
        assert_eq!(read(&file), (vec![0, 1, 2], true));
        assert_eq!(read(&[]), (vec![], true));
        let third = file.len() * 2 / 3;
        // The last 4 bytes only mark the end of the blocks: without them the third entry is complete.
        for end in third + 1..file.len() - 4 {
            assert_eq!(read(&file[..end]), (vec![0, 1], false), "{end}");
        }
        for at in third..file.len() {
            let mut file = file.clone();
            file[at] ^= 0x10;
            let (entries, _) = read(&file);
            assert_eq!(entries[..2], [0, 1]);
            assert!(entries.len() == 2 || entries[2] == 2, "{at}: {entries:?}");
        }
    }

    #[test]
    fn joined_frames_hold_the_same_and_are_shorter() {
        let frames: Vec<u8> = (0..5_000_u64).flat_map(|entry| frame(&[entry; 64]).unwrap()).collect();
        let mut joined = Vec::new();
        join(&frames[..], &mut joined).unwrap();
        assert_eq!(read(&joined), read(&frames));
        assert!(joined.len() < frames.len() / 2, "{} {}", joined.len(), frames.len());
    }
}
