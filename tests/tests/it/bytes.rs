//! No byte string makes a reader panic: not arbitrary bytes, not a sound file with bytes and lines
//! changed. What it takes from one is sound.

use crate::drawn::config;
use pleach_layout::Layouts;
use pleach_tests::{Trees, trees};
use pleach_tree::{BranchTree, ReadOptions, TreeError, write_records};
use proptest::collection::vec;
use proptest::prelude::*;

/// Reads in both modes and does with a tree what a program would.
fn read(bytes: &[u8], max_line_bytes: usize) {
    for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
        match BranchTree::read(bytes, "bytes", ReadOptions { max_line_bytes, ..options }) {
            Ok((tree, report)) => {
                assert!(!report.has_errors());
                let mut written = Vec::new();
                tree.write(&mut written).unwrap();
                let again =
                    BranchTree::read(written.as_slice(), "written back", ReadOptions::STRICT);
                assert_eq!(again.unwrap().0.records(), tree.records());
                assert!(tree.dot().to_string().starts_with("digraph"));
                assert!(tree.views().count() <= tree.events().len());
                if let Ok(layouts) = Layouts::new(&tree) {
                    layouts.account().unwrap();
                }
            }
            Err(TreeError::Rejected(report)) => {
                assert!(report.has_errors() && !report.to_string().is_empty())
            }
            Err(error) => panic!("bytes in memory cannot fail to be read: {error}"),
        }
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Set(usize, u8),
    Repeat(usize, usize),
    Splice(usize, usize, usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let odd = prop_oneof![
        vec(any::<u8>(), 1..6),
        prop::sample::select(vec![
            b"\0\0\0".to_vec(),
            b"\\ud83d".to_vec(),
            b"\xef\xbb\xbf".to_vec(),
            b"\n".to_vec(),
            b"-1".to_vec(),
            b"9e999".to_vec(),
            b"{".to_vec(),
            b"null".to_vec(),
            b"4294967296".to_vec(),
            b"\r\n".to_vec()
        ]),
    ];
    prop_oneof![
        (at(), odd).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (at(), 1..30_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at(), 1..200_usize).prop_map(|(at, len)| Damage::Repeat(at, len)),
        (at(), at(), 1..200_usize).prop_map(|(from, to, len)| Damage::Splice(from, to, len)),
        at().prop_map(Damage::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: Damage) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    let range = |at: usize, count: usize| at % len..(at % len + count).min(len);
    match damage {
        Damage::Insert(at, new) => drop(bytes.splice(at % len..at % len, new)),
        Damage::Remove(at, count) => drop(bytes.drain(range(at, count))),
        Damage::Set(at, byte) => bytes[at % len] = byte,
        Damage::Repeat(at, count) => {
            let copy = bytes[range(at, count)].to_vec();
            bytes.splice(at % len..at % len, copy);
        }
        Damage::Splice(from, to, count) => {
            let moved: Vec<u8> = bytes.drain(range(from, count)).collect();
            let to = to % (bytes.len() + 1);
            bytes.splice(to..to, moved);
        }
        Damage::Cut(at) => bytes.truncate(at % len),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(bytes in vec(any::<u8>(), 0..400), limit in 0..500_usize) {
        read(&bytes, limit);
    }

    #[test]
    fn fragments_of_records_are_read_or_rejected(text in "(\\{\"t\":\"(header|segment|append|evict|generation|x)\",\"(id|context|from|tokens|version)\":(0|1|null|\\[[0-9]?\\]|\"\\\\u[0-9a-d]{4}\")\\}?\n?|[\\x00\r\n{}\",:]){0,12}") {
        read(text.as_bytes(), 1 << 20);
    }

    #[test]
    fn damaged_files_are_read_or_rejected(
        records in trees(Trees { steps: 6, ..Trees::default() }),
        damages in vec(damage(), 1..6),
        limit in prop_oneof![4 => Just(1_usize << 20), 1 => 20..200_usize],
    ) {
        let mut bytes = Vec::new();
        write_records(&mut bytes, records.iter()).unwrap();
        damages.into_iter().for_each(|damage| apply(&mut bytes, damage));
        read(&bytes, limit);
    }
}
