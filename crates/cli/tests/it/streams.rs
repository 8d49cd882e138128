//! What is no regular file: a session from a pipe is read whole and once; what is written goes into
//! what lies there, link or device.
#![cfg(target_os = "linux")]
use crate::pleach;

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Output;

use crate::pleach::{failure, json, stdout};
use assert_cmd::Command;
use serde_json::Value;

const GATE: &str = "examples/records/gate.jsonl";
const SESSION: &str = "examples/sessions/compacted.jsonl";

/// A folder with a copy of a file that has no sub-agents beside it, as a pipe has none, and the
/// path of the copy.
fn alone(file: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alone.jsonl");
    std::fs::copy(pleach::root().join(file), &path).unwrap();
    (folder, path.display().to_string())
}

fn piped(file: &str, args: &[&str]) -> Output {
    let bytes = std::fs::read(pleach::root().join(file)).unwrap();
    let mut command = Command::cargo_bin("pleach").unwrap();
    command.current_dir(pleach::root()).args(args).write_stdin(bytes).output().unwrap()
}

#[test]
fn a_session_from_a_pipe_is_the_one_that_its_file_holds() {
    for file in [SESSION, GATE] {
        let (_folder, copy) = alone(file);
        let whole = json(&["inspect", &copy, "--json"]);
        for name in ["-", "/dev/stdin"] {
            let output = piped(file, &["inspect", name, "--json"]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let read: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(
                read["stats"] == whole["stats"] && read["harness"] == whole["harness"],
                "{name}: {read}"
            );
        }
        let output = piped(file, &["check", "-", "--no-model", "--json"]);
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(read["file"], "standard input");
        assert_eq!(read["stats"], whole["stats"]);
    }
}

#[test]
fn a_pipe_that_is_read_twice_because_of_a_template_is_converted_whole() {
    fn args(file: &str) -> [&str; 8] {
        let template = "crates/render/src/chatml.jinja";
        ["convert", file, "--clip", "16", "--chat-template", template, "--out", "-"]
    }
    let (_folder, copy) = alone(SESSION);
    let calls = |text: &str| text.matches("\"t\":\"generation\"").count();
    let whole = stdout(&args(&copy));
    let output = piped(SESSION, &args("-"));
    let read = String::from_utf8(output.stdout).unwrap();
    assert!(
        calls(&whole) > 0 && calls(&read) == calls(&whole),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn an_empty_pipe_is_named() {
    let output = Command::cargo_bin("pleach")
        .unwrap()
        .args(["inspect", "-"])
        .write_stdin("")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && error.contains("standard input: is empty"),
        "{error}"
    );
}

#[test]
fn gradients_are_written_through_a_link_into_a_file_that_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("out.safetensors"));
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    let node = file.metadata().unwrap().ino();
    stdout(&["check", GATE, "--clip", "8", "--gradients", &link.display().to_string()]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let about = file.metadata().unwrap();
    assert_eq!((about.permissions().mode() & 0o777, about.ino()), (0o640, node));
    assert!(about.len() > 1000);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn gradients_that_cannot_be_written_name_the_path_that_was_given() {
    for path in ["/dev/full", "/no-such-folder/out.safetensors"] {
        let (status, error) = failure(&["check", GATE, "--clip", "8", "--gradients", path]);
        assert!(
            status == 2 && error.contains(&format!("{path}: ")) && !error.contains(".tmp"),
            "{error}"
        );
    }
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn standard_output_that_cannot_be_written_is_named() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pleach"));
    let output = command
        .current_dir(pleach::root())
        .args(["convert", SESSION, "--out", "-"])
        .stdout(full)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && error.contains("standard output: cannot be written"),
        "{error}"
    );
}
