//! What is written is read back unchanged, and what lenient reading repairs is sound: written back,
//! it passes strict reading with the same views and layouts.

use crate::drawn::{compare, config, tree_of, views};
use pleach_layout::Layouts;
use pleach_tests::{Drawn, Oracle, Trees, trees};
use pleach_tree::{
    BranchTree, CacheSemantics, ReadOptions, Record, Severity, TreeError, write_records,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_records(&mut bytes, records).unwrap();
    bytes
}

/// One change to a file: of a record's place, or of a number, list or key inside it.
#[derive(Debug, Clone, Copy)]
enum Change {
    Delete(usize),
    Duplicate(usize, usize),
    Swap(usize, usize),
    Number(usize, usize, u32),
    Repeat(usize, usize),
    Shorten(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || 0..400_usize;
    let number = prop_oneof![3 => 0..4_u32, 3 => 0..1009_u32, 1 => any::<u32>()];
    prop_oneof![
        1 => at().prop_map(Change::Delete),
        1 => (at(), at()).prop_map(|(a, b)| Change::Duplicate(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        6 => (at(), at(), number).prop_map(|(at, within, number)| Change::Number(at, within, number)),
        2 => (at(), at()).prop_map(|(at, within)| Change::Repeat(at, within)),
        1 => (at(), at()).prop_map(|(at, within)| Change::Shorten(at, within)),
    ]
}

fn apply(records: &mut Vec<Record>, change: Change) {
    let len = records.len();
    if len < 2 {
        return;
    }
    // The header stays: a file without one is rejected under either mode.
    let at = |number: usize| 1 + number % (len - 1);
    match change {
        Change::Delete(a) => drop(records.remove(at(a))),
        Change::Duplicate(a, b) => records.insert(at(b), records[at(a)].clone()),
        Change::Swap(a, b) => records.swap(at(a), at(b)),
        Change::Number(a, within, number) => {
            edit(&mut records[at(a)], |value| renumber(value, &mut (within % 12), number))
        }
        Change::Repeat(a, within) => {
            edit(&mut records[at(a)], |value| relist(value, &mut (within % 4), true))
        }
        Change::Shorten(a, within) => {
            edit(&mut records[at(a)], |value| relist(value, &mut (within % 4), false))
        }
    }
}

/// Edits the JSON of a record; where the outcome is no record, nothing changes.
fn edit(record: &mut Record, change: impl FnOnce(&mut Value) -> bool) {
    let mut value = serde_json::to_value(&*record).unwrap();
    if change(&mut value)
        && let Ok(edited) = serde_json::from_value(value)
    {
        *record = edited;
    }
}

fn renumber(value: &mut Value, left: &mut usize, number: u32) -> bool {
    match value {
        Value::Number(_) if *left == 0 => {
            *value = number.into();
            true
        }
        Value::Number(_) => {
            *left -= 1;
            false
        }
        Value::Array(items) => items.iter_mut().any(|item| renumber(item, left, number)),
        Value::Object(fields) => fields.values_mut().any(|field| renumber(field, left, number)),
        _ => false,
    }
}

fn relist(value: &mut Value, left: &mut usize, longer: bool) -> bool {
    match value {
        Value::Array(items) if *left == 0 => {
            match items.first().cloned().filter(|_| longer) {
                Some(first) => items.push(first),
                None => drop(items.pop()),
            }
            true
        }
        Value::Array(items) => {
            *left -= 1;
            items.iter_mut().any(|item| relist(item, left, longer))
        }
        Value::Object(fields) => fields.values_mut().any(|field| relist(field, left, longer)),
        _ => false,
    }
}

fn any_trees() -> impl Strategy<Value = Drawn> {
    prop_oneof![3 => trees(Trees::default()), 1 => trees(Trees::kv_evict())]
}

/// What lenient reading kept is sound, and says the same to a strict reader.
fn sound(tree: &BranchTree) {
    let written = written(tree.records());
    let again = match BranchTree::read(written.as_slice(), "written back", ReadOptions::STRICT) {
        Ok((again, _)) => again,
        Err(error) => {
            panic!("repaired records are rejected: {error}\n{}", String::from_utf8_lossy(&written))
        }
    };
    assert_eq!(again.records(), tree.records());
    assert_eq!(views(&again), views(tree));
    let (layouts, oracle) = (Layouts::new(tree), Oracle::of(tree.records()));
    let Ok(layouts) = layouts else { return };
    let packed = match tree.header().cache {
        CacheSemantics::Reprefill => oracle.packed(),
        CacheSemantics::KvEvict => oracle.tape(),
    };
    compare(&layouts.packed().unwrap(), &packed);
    compare(&layouts.compressed().unwrap(), &oracle.compressed().0);
    compare(&layouts.full().unwrap(), &oracle.full().0);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn drawn_records_are_sound_and_come_back_as_they_were_written(records in any_trees()) {
        let tree = tree_of(&records);
        prop_assert_eq!(tree.records(), records.as_slice());
        let first = written(tree.records());
        let (again, report) = BranchTree::read(first.as_slice(), "written", ReadOptions::STRICT).unwrap();
        prop_assert!(report.of(Severity::Repaired).next().is_none(), "{}", report);
        prop_assert_eq!(again.records(), records.as_slice());
        prop_assert_eq!(written(again.records()), first);
        sound(&tree);
    }

    #[test]
    fn strict_and_lenient_reading_of_a_sound_file_are_one(records in any_trees()) {
        let strict = tree_of(&records);
        let (lenient, report) = BranchTree::from_records(records.to_vec(), "drawn", ReadOptions::LENIENT).unwrap();
        prop_assert!(report.of(Severity::Repaired).next().is_none(), "{}", report);
        prop_assert_eq!(views(&strict), views(&lenient));
        prop_assert_eq!(strict.header(), lenient.header());
    }

    #[test]
    fn what_lenient_reading_repairs_passes_strict_reading(records in any_trees(), changes in vec(change(), 1..5)) {
        let mut records = records.to_vec();
        changes.into_iter().for_each(|change| apply(&mut records, change));
        let strict = BranchTree::from_records(records.clone(), "changed", ReadOptions::STRICT);
        match BranchTree::from_records(records, "changed", ReadOptions::LENIENT) {
            Ok((tree, report)) => {
                prop_assert!(!report.has_errors());
                prop_assert_eq!(strict.is_ok(), report.of(Severity::Repaired).next().is_none(), "{}", report);
                sound(&tree);
            }
            Err(TreeError::Rejected(report)) => {
                prop_assert!(report.has_errors());
                prop_assert!(report.of(Severity::Error).all(|error| error.fault.repair().is_none()), "{}", report);
                prop_assert!(strict.is_err());
            }
            Err(error) => panic!("{error}"),
        }
    }
}
