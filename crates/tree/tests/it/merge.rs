//! Contract: merged files hold the rollouts of all, under ids that do not clash, and every view is
//! what it was.
use pleach_tree::{
    BranchTree, By, CacheSemantics, Evict, Evicted, Fidelity, Header, Origin, Place, ReadOptions,
    Record, RecordBuilder, Replacement, ReplacementKind, Role, RolloutNames, Segment, SegmentId,
    Source, TreeError, merge,
};

/// A rollout with an eviction by the policy; `first` makes its tokens differ.
fn worker(first: u32) -> Vec<Record> {
    let header =
        Header { files: vec![format!("{first}.log")], ..Header::new("live", Fidelity::Token) };
    let mut log = RecordBuilder::new(header).unwrap();
    let source = Some(Source { file: 0, line: 1, key: "k".into() });
    let task = Segment {
        source,
        ..Segment::new(SegmentId(0), Role::User, Origin::Human).with_tokens(vec![first, 2])
    };
    let task = log.segment(task).unwrap();
    let prompt = log.append(None, [task]).unwrap();
    let said = log.tokens(Role::Assistant, Origin::Policy, [3]).unwrap();
    let call = log.sample(prompt, [said]).unwrap();
    let mark = log.tokens(Role::User, Origin::Harness, [4]).unwrap();
    let placeholder = Replacement::new(ReplacementKind::Placeholder, vec![mark], Place::InPlace);
    let evict = Evict::new(prompt, [Evicted::range(task, 1, 2)]).with_replacement(placeholder);
    let next = log.evict(evict.with_author(By::policy(call))).unwrap();
    let answer = log.tokens(Role::Assistant, Origin::Policy, [5]).unwrap();
    log.sample(next, [answer]).unwrap();
    log.into_records()
}

#[test]
fn every_view_stands_under_new_ids_and_every_source_keeps_its_file() {
    let files = [10, 20, 30].map(worker);
    let named = ["a", "b", "c"].into_iter().zip(files.iter().map(Vec::as_slice));
    let merged = merge(named, RolloutNames::ByFile).unwrap();
    let (tree, report) = BranchTree::from_records(merged, "all", ReadOptions::STRICT).unwrap();
    assert!(report.diagnostics.is_empty(), "{report}");
    assert_eq!(tree.rollouts(), ["a/r0", "b/r0", "c/r0"]);
    let views: Vec<Vec<u32>> = tree.views().map(|view| view.tokens()).collect();
    let expected = [10, 20, 30].map(|first| [vec![first, 2, 3], vec![first, 4, 5]]);
    assert_eq!(views, expected.concat());
    assert_eq!(tree.header().files, ["10.log", "20.log", "30.log"]);
    let file = |id| tree.segment(SegmentId(id)).unwrap().source.as_ref().unwrap().file;
    assert_eq!([file(0), file(4), file(8)], [0, 1, 2]);
}

#[test]
fn rollouts_of_one_name_and_files_of_two_kinds_are_named_with_their_files() {
    let (one, other) = (worker(1), worker(2));
    let error = merge([("a", &one[..]), ("b", &other[..])], RolloutNames::AsWritten).unwrap_err();
    assert_eq!(error.to_string(), "a and b both hold rollout \"r0\"; name rollouts by file");
    let error = merge([("a", &one[..]), ("a", &other[..])], RolloutNames::ByFile).unwrap_err();
    assert!(matches!(error, TreeError::SharedRollout { .. }), "two files of one name: {error}");
    let mut kv = other.clone();
    kv[0] = Record::Header(Header {
        cache: CacheSemantics::KvEvict,
        ..Header::new("live", Fidelity::Token)
    });
    let error = merge([("a", &one[..]), ("b", &kv[..])], RolloutNames::ByFile).unwrap_err();
    assert!(matches!(error, TreeError::Unlike { what: "cache semantics", .. }), "{error}");
    let error = merge([("a", &one[1..])], RolloutNames::ByFile).unwrap_err();
    assert!(matches!(error, TreeError::NoHeader { .. }), "{error}");
}
