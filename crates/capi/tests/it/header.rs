//! The header in the repository is the one that cbindgen generates from the sources.

use std::path::Path;

fn generated() -> String {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).expect("readable");
    let builder = cbindgen::Builder::new().with_config(config).with_src(crate_dir.join("src/lib.rs"));
    let mut header = Vec::new();
    builder.generate().expect("the sources parse").write(&mut header);
    String::from_utf8(header).expect("UTF-8")
}

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/apportion.h")
}

#[test]
fn the_header_is_current() {
    let header = std::fs::read_to_string(path()).unwrap_or_default();
    let mend = "cargo test -p apportion-capi --features header --test it header:: -- --ignored";
    assert!(header == generated(), "include/apportion.h is not what the sources say; write it with `{mend}`");
}

#[test]
#[ignore = "writes include/apportion.h"]
fn write() {
    std::fs::write(path(), generated()).expect("writable");
}
