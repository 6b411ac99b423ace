//! Files that a scenario refers to: graphs, video traces, delivery traces and packet captures.
//!
//! A scenario is checked without access to a disk: the caller passes a function that reads files.
//! [`read_file`] is the one for a disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use apportion_core::units::Bytes;

/// A function that reads a whole file. Paths are those of the scenario, joined to its folder.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Longest file that is read as a whole, in bytes. Chosen: a capture of ten million packets with 80 bytes of each takes 1 GB.
const MAX_FILE: u64 = 1 << 30;

/// Reads a whole file from disk, of at most 1 GiB.
///
/// # Errors
/// The system's error, or that it is not a regular file or too long.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MAX_FILE)
}

/// Reads a whole text file of at most `most` bytes.
///
/// # Errors
/// Like [`read_file`]; also if the file is not text.
pub fn read_text_file(path: &Path, most: u64) -> io::Result<String> {
    text_of(read_up_to(path, most)?)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("it is {why}")))
}

/// Bytes as text, or a description of their format.
fn text_of(bytes: Vec<u8>) -> Result<String, &'static str> {
    let is_utf16 = match bytes[..] {
        // The byte order mark, or without it the zero byte of each letter.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [first, second, ..] => (first == 0) != (second == 0),
        _ => false,
    };
    if is_utf16 {
        return Err("UTF-16; save it as UTF-8");
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "not text")?;
    // Programs of Windows begin a file in UTF-8 with a byte order mark.
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    // Lines of old spreadsheets end with a single carriage return.
    Ok(if text.contains('\r') && !text.contains('\n') { text.replace('\r', "\n") } else { text })
}

/// Opens a file for reading piece by piece, of at most `most` bytes. A file that grows meanwhile is cut
/// there.
///
/// # Errors
/// The system's error, or that it is not a regular file (a pipe may never end, nor does `/dev/zero`) or is
/// longer.
pub fn open_file(path: &Path, most: u64) -> io::Result<io::Take<fs::File>> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    // Checked before it is opened, because opening a pipe waits for a writer.
    let kind = fs::metadata(path)?.file_type();
    // For a folder the system's error is clear.
    if !kind.is_file() && !kind.is_dir() {
        return refuse("it is not a regular file".to_owned());
    }
    let file = fs::File::open(path)?;
    if file.metadata()?.len() > most {
        return refuse(too_long(most));
    }
    Ok(file.take(most))
}

fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Some files, for example those of /proc, do not report their length.
    let mut file = open_file(path, most + 1)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, too_long(most)));
    }
    Ok(bytes)
}

fn too_long(most: u64) -> String {
    format!("it is longer than {} MiB", most >> 20)
}

/// Maximum bytes of a graph. Chosen: the maximum number of links in a scenario, with 1 kB each.
const MAX_GRAPH: u64 = 100 << 20;

/// Most packets of a capture, and frames or opportunities of a trace (chosen: hours of video, a minute of a busy link).
pub(crate) const MAX_RECORDS: usize = 10_000_000;

/// Why a file is refused. Prints as `line 3: what is wrong`, without the line if it concerns the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The line, counting from 1; none if it concerns the whole file.
    pub line: Option<usize>,
    /// The problem, and how to mend it.
    pub message: String,
}

impl FileError {
    pub(crate) fn new(line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { line: line.into(), message: message.into() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for FileError {}

/// The content of a file, or why there is none.
type Content = Result<Arc<[u8]>, FileError>;

/// The folder of a scenario, and the files read from it.
pub(crate) struct Files<'a> {
    origin: PathBuf,
    folder: PathBuf,
    read: ReadFile<'a>,
    seen: RefCell<BTreeMap<PathBuf, Content>>,
}

impl<'a> Files<'a> {
    /// Files of the scenario or configuration `origin`.
    pub(crate) fn new(origin: &Path, read: ReadFile<'a>) -> Self {
        let folder = origin.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { origin: origin.to_path_buf(), folder, read, seen: RefCell::default() }
    }

    /// The bytes of a file, which is read once, even if many points of a sweep refer to it.
    // Inlined, as its callers are: in a page it is known to fail, and the parsers of files are not compiled.
    #[inline(always)]
    pub(crate) fn bytes(&self, path: &Path) -> Content {
        if cfg!(all(target_family = "wasm", target_os = "unknown")) {
            Err(in_a_page())
        } else {
            self.read_once(path)
        }
    }

    fn read_once(&self, path: &Path) -> Content {
        let full = self.folder.join(path);
        let mut seen = self.seen.borrow_mut();
        let read = || match (self.read)(&full) {
            Ok(bytes) => match packer(&bytes) {
                Some(tool) => {
                    let message =
                        format!("it is compressed; name what `{tool} -dk {}` writes", full.display());
                    Err(FileError::new(None, message))
                }
                None => Ok(Arc::from(bytes)),
            },
            Err(error) => {
                let (full, origin) = (full.display(), self.origin.display());
                let message =
                    format!("cannot read `{full}`: {error}; paths start at the folder of `{origin}`");
                Err(FileError::new(None, message))
            }
        };
        seen.entry(path.to_path_buf()).or_insert_with(read).clone()
    }

    #[inline(always)]
    pub(crate) fn text(&self, path: &Path) -> Result<String, FileError> {
        let bytes = self.bytes(path)?;
        let refuse = |why| FileError::new(None, format!("`{}` is {why}", path.display()));
        text_of(bytes.to_vec()).map_err(refuse)
    }

    /// The text of a graph, in UTF-8 or, like graphs of the Topology Zoo, in ISO 8859-1, where each byte is a
    /// character.
    #[inline(always)]
    pub(crate) fn graph(&self, path: &Path) -> Result<String, FileError> {
        let bytes = self.bytes(path)?;
        if bytes.len() as u64 > MAX_GRAPH {
            return Err(FileError::new(None, format!("`{}`: {}", path.display(), too_long(MAX_GRAPH))));
        }
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        };
        Ok(text.trim_start_matches('\u{feff}').to_owned())
    }

    /// The files read so far: path and hash of the content.
    pub(crate) fn hashes(&self) -> Vec<(String, u64)> {
        let seen = self.seen.borrow();
        let hash = |(path, read): (&PathBuf, &Content)| {
            let bytes = read.as_ref().ok()?;
            Some((path.display().to_string(), fnv1a(bytes)))
        };
        seen.iter().filter_map(hash).collect()
    }
}

fn in_a_page() -> FileError {
    FileError::new(None, "a page reads no files; run the scenario with the command `apportion run`")
}

/// The program that compressed these bytes, by the magic numbers of its files.
fn packer(bytes: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], _); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    known.into_iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, tool)| tool)
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Parses frame sizes in bytes, one a line; empty lines and text after `#` are skipped.
pub(crate) fn frames(text: &str) -> Result<Arc<[Bytes]>, FileError> {
    let mut frames = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let size: u32 = match line.parse() {
            Ok(size) if size > 0 => size,
            _ => return Err(FileError::new(number, format!("`{line}` is not a number of bytes from 1"))),
        };
        if frames.len() >= MAX_RECORDS {
            return Err(FileError::new(None, format!("more than {MAX_RECORDS} frames")));
        }
        frames.push(Bytes::new(size.into()));
    }
    if frames.is_empty() { Err(FileError::new(None, "there are no frames in it")) } else { Ok(frames.into()) }
}

/// Parses sizes of the segments of a video: one segment a line with its bytes in each rate, equally many on
/// each line; empty lines, text after `#` and a first line of names are skipped.
pub(crate) fn segments(text: &str) -> Result<Arc<[Arc<[Bytes]>]>, FileError> {
    let mut segments: Vec<Arc<[Bytes]>> = Vec::new();
    let mut may_be_names = true;
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let fail = |message: String| FileError::new(number, message);
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let fields = fields(line);
        if std::mem::take(&mut may_be_names) && fields.iter().all(|field| field.parse::<f64>().is_err()) {
            continue;
        }
        let size = |field: &&str| match field.parse::<u32>() {
            Ok(size) if size > 0 => Ok(Bytes::new(size.into())),
            _ => Err(fail(format!("`{field}` is not a number of bytes from 1"))),
        };
        let sizes: Arc<[Bytes]> = fields.iter().map(size).collect::<Result<_, _>>()?;
        if let Some(columns) =
            segments.first().map(|first| first.len()).filter(|columns| *columns != sizes.len())
        {
            return Err(fail(format!(
                "`{line}` has {} sizes, and the lines before have {columns}",
                sizes.len()
            )));
        }
        if segments.len() >= MAX_RECORDS / sizes.len() {
            return Err(fail(format!("more than {MAX_RECORDS} sizes")));
        }
        segments.push(sizes);
    }
    if segments.is_empty() {
        Err(FileError::new(None, "there are no segments in it"))
    } else {
        Ok(segments.into())
    }
}

/// The fields of a line: between commas, else semicolons, else blanks.
pub(crate) fn fields(line: &str) -> Vec<&str> {
    fn unquoted(field: &str) -> &str {
        field.trim().trim_matches('"')
    }
    match [',', ';'].into_iter().find(|separator| line.contains(*separator)) {
        Some(separator) => line.split(separator).map(unquoted).collect(),
        None => line.split_whitespace().map(unquoted).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_utf_16_is_named() {
        for bytes in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0b\0", b"\0a\0b"] {
            assert_eq!(text_of(bytes.to_vec()), Err("UTF-16; save it as UTF-8"));
        }
        assert_eq!(text_of(b"\xe9t\xe9".to_vec()), Err("not text"));
        assert_eq!(text_of(b"ab".to_vec()).as_deref(), Ok("ab"));
        assert_eq!(text_of(b"\xef\xbb\xbfab".to_vec()).as_deref(), Ok("ab"));
        assert_eq!(text_of(b"a\rb\r".to_vec()).as_deref(), Ok("a\nb\n"));
        assert_eq!(text_of(b"a\r\nb".to_vec()).as_deref(), Ok("a\r\nb"));
    }

    #[test]
    fn segments_have_a_size_in_each_rate() {
        let read = segments("low,high\n100, 200\n# end\n120,230\n").unwrap();
        let sizes: Vec<Vec<u64>> =
            read.iter().map(|sizes| sizes.iter().map(|size| size.get()).collect()).collect();
        assert_eq!(sizes, [[100, 200], [120, 230]]);
        let error = |text| segments(text).unwrap_err().to_string();
        assert_eq!(error("1 2\n3"), "line 2: `3` has 1 sizes, and the lines before have 2");
        assert_eq!(error("1 0"), "line 1: `0` is not a number of bytes from 1");
        assert_eq!(error("a b\nc d"), "line 2: `c` is not a number of bytes from 1");
        assert_eq!(error("a b"), "there are no segments in it");
    }

    #[test]
    fn a_trace_has_one_frame_a_line() {
        assert_eq!(&*frames("# sizes\n1200\n\n 300 # B\n").unwrap(), [Bytes::new(1200), Bytes::new(300)]);
        assert_eq!(frames("1\n-5\n"), Err(FileError::new(2, "`-5` is not a number of bytes from 1")));
        assert_eq!(frames("\n"), Err(FileError::new(None, "there are no frames in it")));
    }
}
