//! Compiles the tc programs if the feature `bpf` is enabled: `clang --target=bpf`, one object for each
//! `bpf/*.c`.
//!
//! Without the feature, or if clang fails, the embedded object is `None`; in the second case a warning gives
//! the reason, and loading fails.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

/// The names of the programs' source files.
const SOURCES: [&str; 6] = ["csfq", "hcsfq", "tred", "flows", "prefixes", "check"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let is_wanted = env::var_os("CARGO_FEATURE_BPF").is_some();
    let mut code = String::new();
    for name in SOURCES {
        let object = Path::new(&out).join(format!("{name}.o"));
        let embedded = match is_wanted.then(|| compile(name, &object)) {
            // The loader reads an object as 64-bit words.
            Some(Ok(())) => format!("Some(&Aligned(*include_bytes!({object:?})).0)"),
            Some(Err(why)) => {
                println!("cargo::warning=bpf/{name}.c is left out: {why}");
                "None".to_owned()
            }
            None => "None".to_owned(),
        };
        let constant = name.to_uppercase();
        code += &format!("pub(crate) static {constant}: Option<&[u8]> = {embedded};\n");
    }
    fs::write(Path::new(&out).join("objects.rs"), code)
}

fn compile(name: &str, object: &Path) -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let here = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let status = Command::new(&clang)
        // -g: types describe the maps. v3: 32-bit registers and exchanges (Linux 5.12).
        .args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"])
        // Debug information contains file names, here relative to the crate, so that the object does not
        // depend on the path of the checkout.
        .arg(format!("-ffile-prefix-map={here}=."))
        // The path of asm/types.h on Debian.
        .arg("-idirafter")
        .arg(format!("/usr/include/{arch}-linux-gnu"))
        .arg(format!("bpf/{name}.c"))
        .arg("-o")
        .arg(object)
        .status()
        .map_err(|error| format!("`{clang}` cannot be run ({error}); install clang or name one by CLANG"))?;
    if status.success() { Ok(()) } else { Err(format!("`{clang}` failed with {status}")) }
}
