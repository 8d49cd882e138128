//! A rollout of Codex CLI is read compressed as it is plain, and the one that it was forked from is
//! found where it lies.
use crate::shown;

use std::io::Write;

use crate::damaged::damaged;
use crate::rollout::{meta, rollout, said, turn};
use crate::shown::told;
use pleach_harness::{Harness, Input, ReadOptions, convert_from, detect};

#[test]
fn the_rollout_that_one_was_forked_from_is_found_in_the_folder_of_another_day() {
    let shared = [said("user", "first"), said("assistant", "one")];
    let parent = rollout(&[vec![meta("").replace("own", "par")], shared.to_vec()].concat());
    let own = [
        vec![meta(r#","forked_from_id":"par""#)],
        shared.to_vec(),
        vec![said("user", "mine"), said("assistant", "two")],
    ];
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    write("sessions/2026/01/31/rollout-2026-01-31T09-00-00-par.jsonl", &parent);
    write("sessions/2026/01/31/rollout-2026-01-31T09-00-00-xpar.jsonl", b"{}");
    let own =
        write("sessions/2026/02/01/rollout-2026-02-01T09-00-00-own.jsonl", &rollout(&own.concat()));
    let shown = shown::told_of(&Input::open(own).unwrap(), ReadOptions::STRICT);
    assert!(shown.contains("calls (1) are copied from rollout par, which lies beside"), "{shown}");
    assert_eq!(shown.matches("of thread main").count(), 1, "{shown}");
}

#[test]
fn an_empty_id_names_no_rollout() {
    let other = rollout(&[turn(), said("user", "else")]);
    let own = rollout(&[
        meta(r#","forked_from_id":"""#),
        turn(),
        said("user", "hi"),
        said("assistant", "x"),
    ]);
    let shown =
        told("rollout-own.jsonl", &own, &[("rollout-other.jsonl", &other)], ReadOptions::STRICT);
    assert!(!shown.contains("copied-history"), "{shown}");
}

#[test]
fn a_rollout_on_disk_is_read_through_zstd_and_gzip() {
    let text = rollout(&[meta(""), turn(), said("user", "hi"), said("assistant", "x")]);
    let folder = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    let packed = [
        ("rollout-1.jsonl", text.clone()),
        ("rollout-1.jsonl.zst", zstd::encode_all(text.as_slice(), 3).unwrap()),
        ("rollout-1.jsonl.gz", gzip.finish().unwrap()),
    ];
    let records = packed.map(|(name, bytes)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let input = Input::open(path).unwrap();
        assert_eq!(detect(&input).unwrap(), Harness::Codex);
        convert_from(&input, None, ReadOptions::STRICT).unwrap().records.split_off(1)
    });
    assert!(records[0].len() > 4);
    assert_eq!((&records[1], &records[2]), (&records[0], &records[0]));
}

#[test]
fn a_rollout_whose_parent_is_damaged_is_read_as_its_own() {
    let shared = [turn(), said("user", "hi"), said("assistant", "x")];
    let parent = rollout(&[vec![meta("").replace("own", "par")], shared.to_vec()].concat());
    let own = [
        vec![meta(r#","forked_from_id":"par""#)],
        shared.to_vec(),
        vec![said("user", "on"), said("assistant", "y")],
    ];
    for parent in damaged(&parent) {
        let beside: [(&str, &[u8]); 1] = [("rollout-par.jsonl.gz", &parent)];
        let shown =
            told("rollout-own.jsonl", &rollout(&own.concat()), &beside, ReadOptions::STRICT);
        assert_eq!(shown.matches("of thread main").count(), 2, "{shown}");
        assert!(
            shown.contains(
                "rollout-par.jsonl.gz:1: warning[harness]: unread-beside: it lies beside"
            ),
            "{shown}"
        );
        assert!(
            shown.contains("which is not beside it or cannot be read: calls of that one"),
            "{shown}"
        );
    }
}
