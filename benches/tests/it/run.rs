//! Running the program.
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// The folder of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The program's output, run in the folder of the checkout.
pub(crate) fn bench(args: &[&str]) -> Output {
    Command::cargo_bin("pleach-bench").unwrap().current_dir(root()).args(args).output().unwrap()
}

/// What the program prints where all is well.
pub(crate) fn stdout(args: &[&str]) -> String {
    let output = bench(args);
    assert!(
        output.status.success(),
        "pleach-bench {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON that the program prints where all is well.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// Exit status and standard error of a run that is not well.
pub(crate) fn failure(args: &[&str]) -> (i32, String) {
    let output = bench(args);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}
