//! Embeds the TOML files of all papers. `papers` next to `src` is a link to the project's folder, so that a
//! package contains the files. Where git makes no links, as on Windows, a file with the path is in its place.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = env::current_dir()?;
    let root = here.join(fs::read_to_string("papers").unwrap_or_else(|_| "papers".to_owned()));
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    for folder in fs::read_dir(&root)? {
        let folder = folder?.path();
        if folder.join("expect.toml").is_file() {
            for file in fs::read_dir(&folder)? {
                files.push(file?.path());
            }
        }
    }
    let name = |file: &Path| {
        let parts = file.strip_prefix(&root).ok()?.iter();
        let parts: Option<Vec<&str>> = parts.map(|part| part.to_str()).collect();
        parts.map(|parts| parts.join("/")).filter(|name| name.ends_with(".toml"))
    };
    let mut named: Vec<(String, PathBuf)> =
        files.into_iter().filter_map(|file| Some((name(&file)?, file))).collect();
    named.sort();
    let mut code = "/// Paths below the folder of papers with their texts, sorted by path.\n\
                    static FILES: &[(&str, &str)] = &[\n"
        .to_owned();
    for (name, file) in named {
        let _ = writeln!(code, "    ({name:?}, include_str!({file:?})),");
    }
    code.push_str("];\n");
    fs::write(out.join("files.rs"), code)
}
