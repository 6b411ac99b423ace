//! What is not a regular file ends a command at once, in words.

use assert_cmd::Command;

#[test]
fn a_device_is_refused() {
    for arguments in [
        &["run", "/dev/zero"][..],
        &["gateway", "check", "/dev/zero"],
        &["shell", "--trace", "/dev/zero", "--", "true"],
    ] {
        let output =
            Command::cargo_bin("apportion").expect("the program").args(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("/dev/zero") && said.contains("not a regular file"), "{arguments:?}: {said}");
    }
}
